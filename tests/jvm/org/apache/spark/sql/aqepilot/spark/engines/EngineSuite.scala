package org.apache.spark.sql.aqepilot.spark.engines

import org.apache.spark.sql.aqepilot.decision.{JoinWords, Selection}
import org.apache.spark.sql.aqepilot.plans.joins.JoinStrategy
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.execution.{BinaryExecNode, LeafExecNode, SparkPlan}
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

class EngineSuite extends AnyFunSuite {

  import EngineSuite._

  private def engine(settings: (String, String)*) = {
    val conf = new SQLConf
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    Engine.of(conf).map(_.name)
  }

  private val plugin = "spark.plugins" -> "org.example.Other, org.apache.spark.CometPlugin"
  private val extension = "spark.sql.extensions" ->
    "io.aqepilot.AqePilotExtension,org.apache.comet.CometSparkSessionExtensions"

  test("an engine is known by its plugin or its extension") {
    assert(engine(plugin).contains("COMET"))
    assert(engine(extension).contains("COMET"))
    assert(engine("spark.plugins" -> "org.apache.gluten.GlutenPlugin").contains("GLUTEN"))
    assert(engine().isEmpty)
    assert(engine("spark.plugins" -> "org.example.NotCometPluginAtAll").isEmpty)
  }

  test("an engine that a session has switched off is none") {
    assert(engine(plugin, "spark.comet.enabled" -> "FALSE").isEmpty)
    assert(engine(extension, "spark.comet.exec.enabled" -> "false").isEmpty)
    assert(engine(plugin, "spark.comet.enabled" -> "true").contains("COMET"))
  }

  test("a join of an engine has the strategy of Spark's that it stands in for") {
    val strategies = Seq[SparkPlan](
      CometSortMergeJoinExec(scan, scan),
      CometHashJoinExec(BuildLeft, scan, scan),
      CometBroadcastHashJoinExec(BuildLeft, scan, scan),
      BroadcastNestedLoopJoinExecTransformer(BuildLeft, scan, scan)
    ).map(JoinStrategy.of(_).get)
    assert(strategies == Seq(
      "SortMergeJoin",
      "ShuffledHashJoin BuildLeft",
      "BroadcastHashJoin BuildLeft",
      "BroadcastNestedLoopJoin BuildLeft"
    ))
  }

  test("and the words of join_selection") {
    assert(JoinStrategy.selection(CometSortMergeJoinExec(scan, scan)).contains(
      Selection(JoinWords.ShuffleMerge, None)
    ))
    assert(JoinStrategy.selection(CometHashJoinExec(BuildLeft, scan, scan)).contains(
      Selection(JoinWords.ShuffleHash, Some(JoinWords.BuildLeft))
    ))
  }

  test("what joins nothing is no join") {
    assert(JoinStrategy.of(scan).isEmpty)
    assert(JoinStrategy.of(Zipped(scan, scan)).isEmpty)
  }
}

object EngineSuite {

  private val scan = Scan()

  case class Scan() extends LeafExecNode {
    override def output: Seq[Attribute] = Nil
    override protected def doExecute() = throw new UnsupportedOperationException
  }

  abstract class OfTwo extends BinaryExecNode {
    override def output: Seq[Attribute] = left.output ++ right.output
    override protected def doExecute() = throw new UnsupportedOperationException
    override protected def withNewChildrenInternal(l: SparkPlan, r: SparkPlan): SparkPlan =
      throw new UnsupportedOperationException
  }

  case class CometSortMergeJoinExec(left: SparkPlan, right: SparkPlan) extends OfTwo
  case class CometHashJoinExec(buildSide: BuildSide, left: SparkPlan, right: SparkPlan)
      extends OfTwo
  case class CometBroadcastHashJoinExec(buildSide: BuildSide, left: SparkPlan, right: SparkPlan)
      extends OfTwo
  case class BroadcastNestedLoopJoinExecTransformer(
      buildSide: BuildSide,
      left: SparkPlan,
      right: SparkPlan
  ) extends OfTwo
  case class Zipped(left: SparkPlan, right: SparkPlan) extends OfTwo
}
