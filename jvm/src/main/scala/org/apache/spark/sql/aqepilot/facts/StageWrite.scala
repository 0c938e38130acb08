package org.apache.spark.sql.aqepilot.facts

import java.util.Locale

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{DataWritingCommand, DataWritingCommandExec}
import org.apache.spark.sql.execution.datasources.{
  FileFormat,
  InsertIntoHadoopFsRelationCommand,
  WriteFilesExec
}
import org.apache.spark.sql.execution.datasources.v2.V2TableWriteExec
import org.apache.spark.sql.sources.DataSourceRegister

/** What a stage writes.
  *
  * @param format
  *   e.g. `parquet`; None when the plan does not tell
  */
final case class StageWrite(format: Option[String])

object StageWrite {

  def of(plan: SparkPlan): Option[StageWrite] = plan match {
    case c: DataWritingCommandExec => Some(StageWrite(ofCommand(c.cmd)))
    case w: WriteFilesExec         => Some(StageWrite(Some(name(w.fileFormat))))
    case _: V2TableWriteExec       => Some(StageWrite(None))
    case _                         => None
  }

  private def ofCommand(command: DataWritingCommand): Option[String] = command match {
    case i: InsertIntoHadoopFsRelationCommand => Some(name(i.fileFormat))
    case _                                    => None
  }

  private def name(format: FileFormat): String = format match {
    case named: DataSourceRegister => named.shortName()
    case other                     => other.getClass.getSimpleName.toLowerCase(Locale.ROOT)
  }
}
