package org.apache.spark.sql.aqepilot.facts

import scala.util.control.NonFatal

import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.{
  Expand,
  Generate,
  Join,
  LeafNode,
  LocalRelation,
  LogicalPlan,
  OneRowRelation,
  Range,
  Statistics
}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** What Spark estimates of a plan, and where its size comes from.
  *
  * The rules ask for estimates of plans that plain Spark runs without asking. Spark's estimation can throw: a filter on
  * a column with NaN and column statistics fails an assertion of `FilterEstimation` under `spark.sql.cbo.enabled`. So
  * nobody else asks a plan for its statistics.
  */
private[aqepilot] object Estimates extends JoinSelectionHelper {
  private val words = Seq("STAGE", "STATISTICS", "FILES", "GUESS")
  private val (stage, statistics, files, guess) = (0, 1, 2, 3)

  /** The plan's statistics. Where Spark fails to estimate them, only a size is there, of
    * `spark.sql.defaultSizeInBytes`, as for a table of which nothing is known.
    */
  def of(plan: LogicalPlan): Statistics = asked(plan).fold(
    why => {
      FailOpen.problem(Problem(Problem.EstimateFailed, s"$why: a plan's size counts as not known"))
      Statistics(sizeInBytes = plan.conf.defaultSizeInBytes)
    },
    identity
  )

  private def asked(plan: LogicalPlan): Either[String, Statistics] = {
    LazyRow.assertIsNotFinishing("an estimate")
    if (isUnasked(plan)) Right(Statistics(sizeInBytes = plan.conf.defaultSizeInBytes))
    else
      try Right(plan.stats)
      catch {
        case NonFatal(e) => Left(s"Spark's own estimation failed (${FailOpen.short(e)})")
      }
  }

  /** Where Spark's own suites run, `spark.testing`, it throws if a relation of a DataSource V2 is asked for statistics
    * before filters are pushed into it, which is after the optimiser's operator rules; else it answers.
    */
  def isUnasked(plan: LogicalPlan): Boolean =
    Utils.isTesting && plan.exists(_.isInstanceOf[DataSourceV2Relation])

  /** Whether Spark broadcasts a side of this size; not one whose size it cannot estimate. */
  def broadcasts(plan: LogicalPlan, conf: SQLConf): Boolean =
    asked(plan).isRight && canBroadcastBySize(plan, conf)

  /** Where a plan's size comes from, by its worst part. */
  def from(plan: LogicalPlan, conf: SQLConf): String = words(rank(plan, conf))

  /** Whether it is the size of rows, measured or by statistics. */
  def isOfRows(plan: LogicalPlan, conf: SQLConf): Boolean = rank(plan, conf) <= statistics

  private def rank(plan: LogicalPlan, conf: SQLConf): Int =
    if (of(plan).sizeInBytes >= conf.defaultSizeInBytes) guess
    else
      plan match {
        case Stage(_, _) if of(plan).isRuntime               => stage
        case Stage(link, _)                                  => rank(link, conf)
        case _: LocalRelation | _: Range | _: OneRowRelation => statistics
        case leaf if leaf.children.isEmpty                   =>
          if (of(leaf).rowCount.isDefined) statistics
          else if (leaf.isInstanceOf[LeafNode]) files
          else guess
        case _ =>
          val worst = plan.children.map(rank(_, conf)).max
          val multiplies = plan match {
            case _: Join | _: Generate | _: Expand => true
            case _                                 => false
          }
          if (multiplies && of(plan).rowCount.isEmpty) guess else worst
      }
}
