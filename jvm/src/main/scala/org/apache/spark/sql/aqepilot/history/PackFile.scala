package org.apache.spark.sql.aqepilot.history

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.parquet.example.data.Group
import org.apache.parquet.hadoop.example.GroupReadSupport
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.hadoop.{ParquetFileReader, ParquetReader}
import org.apache.parquet.schema.MessageType
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT32

/** What is wrong with a file that is to be a pack. */
final private[history] class NotAPack(message: String) extends RuntimeException(message)

private[history] object NotAPack {
  def unless(isOne: Boolean, message: => String): Unit = if (!isOne) throw new NotAPack(message)
}

/** Reads the file of a pack. */
private[history] object PackFile {

  /** Of the columns. */
  val Version = 1

  /** Of a larger one nothing is read. */
  val MaxBytes: Long = 512L << 20

  private val needed = Seq("version", "signature", "form", "kind")

  /** @throws NotAPack
    *   it is none that can be read
    */
  def read(file: FileStatus, conf: Configuration, builder: PackBuilder = new PackBuilder): Pack = {
    NotAPack.unless(!file.isDirectory, "it is a folder, and a pack is one file")
    NotAPack.unless(file.getLen <= MaxBytes, s"it has more than $MaxBytes bytes")
    checkColumns(file.getPath, conf)
    val reader =
      ParquetReader.builder(new GroupReadSupport, file.getPath).withConf(conf).build()
    try {
      var columns: Columns = null
      var row = reader.read()
      while (row != null) {
        if (columns == null) columns = new Columns(row.getType.asInstanceOf[MessageType])
        add(row, columns, builder)
        if (Thread.currentThread().isInterrupted) throw new InterruptedException
        row = reader.read()
      }
      builder.pack
    } finally reader.close()
  }

  private def checkColumns(path: Path, conf: Configuration): Unit = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))
    try {
      val schema = reader.getFooter.getFileMetaData.getSchema
      val missing = needed.filterNot(schema.containsField)
      NotAPack.unless(missing.isEmpty, s"it has no column ${missing.mkString(", ")}")
    } finally reader.close()
  }

  private def add(row: Group, columns: Columns, builder: PackBuilder): Unit = {
    val version = columns.long(row, "version")
    NotAPack.unless(
      version.contains(Version.toLong),
      s"its version is ${version.getOrElse("null")}, and this aqepilot reads version $Version"
    )
    val signature = columns.long(row, "signature").getOrElse {
      throw new NotAPack("a row has no signature")
    }
    val isSame = columns.text(row, "form").contains("SAME")
    columns.text(row, "kind") match {
      case Some(Kind.Held) =>
        columns.long(row, "held_until_ms").foreach { until =>
          builder.hold(signature, isSame, until, columns.text(row, "reason").getOrElse(""))
        }
      case Some(kind) if Kind.measured.contains(kind) =>
        builder.add(signature, isSame, kind, run(row, columns))
      case _ => // of a later aqepilot
    }
  }

  private def run(row: Group, columns: Columns) = MeasuredRun(
    columns.long(row, "run_ms").getOrElse(0L),
    columns.long(row, "input_bytes"),
    columns.long(row, "row_count"),
    columns.long(row, "bytes"),
    columns.long(row, "shuffle_bytes"),
    columns.long(row, "partitions"),
    columns.long(row, "max_partition_bytes"),
    columns.long(row, "median_partition_bytes"),
    columns.long(row, "input_rows"),
    columns.long(row, "task_ms"),
    columns.long(row, "read_bytes"),
    columns.long(row, "read_rows"),
    columns.long(row, "spilled_bytes"),
    columns.long(row, "peak_memory_bytes"),
    columns.long(row, "failures"),
    columns.boolean(row, "decided")
  )

  /** Where the columns of a file are; one that it lacks is null in each row. */
  final private class Columns(schema: MessageType) {

    private val places = (0 until schema.getFieldCount).map(i => schema.getFieldName(i) -> i).toMap

    private val isInt = (0 until schema.getFieldCount).map { i =>
      schema.getType(i).asPrimitiveType.getPrimitiveTypeName == INT32
    }

    def long(row: Group, name: String): Option[Long] = at(row, name).map { i =>
      if (isInt(i)) row.getInteger(i, 0).toLong else row.getLong(i, 0)
    }

    def text(row: Group, name: String): Option[String] = at(row, name).map(row.getString(_, 0))

    def boolean(row: Group, name: String): Boolean = at(row, name).exists(row.getBoolean(_, 0))

    private def at(row: Group, name: String): Option[Int] =
      places.get(name).filter(row.getFieldRepetitionCount(_) > 0)
  }
}
