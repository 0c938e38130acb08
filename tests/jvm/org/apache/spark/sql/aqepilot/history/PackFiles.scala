package org.apache.spark.sql.aqepilot.history

import java.io.File
import java.nio.file.{Files, StandardCopyOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Writes packs as `aqepilot history build` does. */
object PackFiles {

  /** Those that are not null. */
  val needed: Seq[(String, String)] =
    Seq("version" -> "int", "signature" -> "bigint", "form" -> "string", "kind" -> "string")

  val columns: Seq[(String, String)] = needed ++ Seq(
    "run_ms" -> "bigint",
    "input_bytes" -> "bigint",
    "row_count" -> "bigint",
    "bytes" -> "bigint",
    "shuffle_bytes" -> "bigint",
    "partitions" -> "int",
    "max_partition_bytes" -> "bigint",
    "median_partition_bytes" -> "bigint",
    "input_rows" -> "bigint",
    "task_ms" -> "bigint",
    "read_bytes" -> "bigint",
    "read_rows" -> "bigint",
    "spilled_bytes" -> "bigint",
    "peak_memory_bytes" -> "bigint",
    "failures" -> "int",
    "decided" -> "boolean",
    "held_until_ms" -> "bigint",
    "reason" -> "string"
  )

  /** Rows that have some of the columns. */
  def rows(spark: SparkSession, rows: Seq[Map[String, Any]]): DataFrame = {
    val all = rows.map { row =>
      val values = columns.map { case (name, kind) =>
        lit((row ++ Map("version" -> row.getOrElse("version", 1))).getOrElse(name, null))
          .cast(kind).as(name)
      }
      spark.range(1).select(values: _*)
    }
    all.reduce(_ union _)
  }

  /** Puts a pack of these rows at a place, in one file, at once. */
  def write(rows: DataFrame, to: File): Unit = {
    val folder = Files.createTempDirectory("aqepilot-pack").toFile
    val written = new File(folder, "pack")
    rows.repartition(1).sortWithinPartitions(col("signature")).write.parquet(written.getPath)
    val part = written.listFiles.find(_.getName.startsWith("part-")).get
    Files.move(part.toPath, to.toPath, StandardCopyOption.REPLACE_EXISTING)
    new File(to.getParentFile, s".${to.getName}.crc").delete()
  }

  def read(file: File, builder: PackBuilder = new PackBuilder): Pack =
    PackFile.read(status(file), new Configuration, builder)

  def status(file: File): FileStatus = {
    val path = new Path(file.getPath)
    path.getFileSystem(new Configuration).getFileStatus(path)
  }
}
