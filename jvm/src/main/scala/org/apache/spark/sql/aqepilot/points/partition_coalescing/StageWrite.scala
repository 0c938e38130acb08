package org.apache.spark.sql.aqepilot.points.partition_coalescing

import java.util.Locale

import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.plans.promises.FinalStage
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{DataWritingCommand, DataWritingCommandExec}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{
  FileFormat,
  InsertIntoHadoopFsRelationCommand,
  WriteFilesExec
}
import org.apache.spark.sql.sources.DataSourceRegister

/** What a stage writes.
  *
  * @param format
  *   e.g. `parquet`; None when the plan does not tell
  */
final case class StageWrite(format: Option[String])

object StageWrite {

  /** A command may stand above the adaptive plan, as those of V2 sources do: then the final stage of the query
    * that it writes is the one, and the plan of the execution tells.
    */
  def of(plan: SparkPlan, executionId: Option[Long]): Option[StageWrite] = plan match {
    case c: DataWritingCommandExec => Some(StageWrite(ofCommand(c.cmd)))
    case w: WriteFilesExec         => Some(StageWrite(Some(name(w.fileFormat))))
    case _ if FinalStage.is(plan)  =>
      QueryFacts
        .execution(executionId)
        .flatMap(qe => ofExecution(qe.optimizedPlan))
        .collect { case (query, write) if outputs(query.output) == outputs(plan.output) => write }
    case _ => None
  }

  private def outputs(columns: Seq[Attribute]): Seq[ExprId] = columns.map(_.exprId)

  private def ofExecution(plan: LogicalPlan): Option[(LogicalPlan, StageWrite)] = plan match {
    case w: V2WriteCommand     => Some((w.query, StageWrite(ofTable(w))))
    case c: DataWritingCommand => Some((c.query, StageWrite(ofCommand(c))))
    case _                     => None
  }

  private def ofTable(write: V2WriteCommand): Option[String] = write.table match {
    case r: DataSourceV2Relation =>
      Option(r.table.properties.get(TableCatalog.PROP_PROVIDER)).map(_.toLowerCase(Locale.ROOT))
    case _ => None
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
