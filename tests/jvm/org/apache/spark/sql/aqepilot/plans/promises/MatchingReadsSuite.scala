package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.plans.logical.{
  HintInfo,
  Join,
  JoinHint,
  LogicalPlan,
  NO_BROADCAST_AND_REPLICATION
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  AdaptiveSparkPlanHelper,
  OptimizeShuffleWithLocalRead
}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin, SortMergeJoinExec}
import org.apache.spark.sql.execution.{ProjectExec, SparkPlan}
import org.apache.spark.sql.{Row, SparkSession, SparkSessionExtensions}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A Spark whose local reads reach where ours of today do not: through projections. */
class OtherLocalReads extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectQueryStageOptimizerRule(_ => OtherLocalReads)
    extensions.injectPostHocResolutionRule(_ => KeptWhole)
  }
}

/** The hint that Spark gives the target of a MERGE into a row-level table, which no text of SQL can. */
object KeptWhole extends Rule[LogicalPlan] {

  @volatile var isOn = false

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!isOn) plan
    else
      plan.transform { case j: Join =>
        j.copy(hint = JoinHint(Some(HintInfo(Some(NO_BROADCAST_AND_REPLICATION))), None))
      }
}

object OtherLocalReads extends Rule[SparkPlan] {

  @volatile var isOn = false

  override def apply(plan: SparkPlan): SparkPlan =
    if (!isOn) plan
    else
      plan.transform {
        case ProjectExec(list, read: AQEShuffleReadExec) =>
          ProjectExec(list, OptimizeShuffleWithLocalRead(read))
      }
}

/** Split joins keep right rows when another rule changes what they read. */
class MatchingReadsSuite extends AnyFunSuite with AdaptiveSparkPlanHelper with BeforeAndAfterAll {

  private lazy val spark = SparkSession
    .builder()
    .master("local[2]")
    .config("spark.ui.enabled", "false")
    .config(
      "spark.sql.extensions",
      s"${classOf[OtherLocalReads].getName},io.aqepilot.AqePilotExtension"
    )
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .config("spark.sql.adaptive.autoBroadcastJoinThreshold", "40KB")
    .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    .getOrCreate()

  override def afterAll(): Unit = {
    OtherLocalReads.isOn = false
    KeptWhole.isOn = false
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private val sql =
    """SELECT /*+ MERGE(c) */ count(*), sum(a.v), sum(b.v), sum(c.v)
      |FROM a JOIN b ON a.k = b.k JOIN c ON c.k = a.k""".stripMargin

  private def run(): (Seq[Row], SparkPlan) = {
    val query = spark.sql(sql)
    (query.collect().toSeq, query.queryExecution.executedPlan)
  }

  private def isSplit(plan: SparkPlan): Boolean =
    collectFirst(plan) { case j: ShuffledJoin => j.isSkewJoin }.contains(true)

  test("a side that is read otherwise than it was split: all sides are read in whole") {
    def table(name: String, rows: Long, keys: Long): Unit =
      spark.range(0, rows, 1, 3).selectExpr(s"id % $keys AS k", "id AS v")
        .createOrReplaceTempView(name)
    table("a", 9000, 300)
    table("b", 300, 300)
    table("c", 9000, 300)
    val (expected, plain) = run()
    assert(find(plain)(_.isInstanceOf[SortMergeJoinExec]).isDefined)
    assert(find(plain)(_.isInstanceOf[BroadcastHashJoinExec]).isDefined)

    val splits = "transform(left.bytes_by_partition_id, b -> 2)"
    spark.conf.set("spark.aqepilot.policies", "test")
    spark.conf.set(
      "spark.aqepilot.policy.test.skew_join",
      s"CASE WHEN join.strategy LIKE 'Broadcast%' THEN named_struct('left_splits', $splits) END"
    )
    val (rows, split) = run()
    assert(isSplit(split))
    assert(rows == expected)

    OtherLocalReads.isOn = true
    val (others, whole) = run()
    assert(!isSplit(whole))
    assert(others == expected)
  }

  test("the source of a MERGE is not split: each part of it would read all of the target") {
    OtherLocalReads.isOn = false
    val session = spark.newSession()
    session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    def table(name: String): Unit =
      session.range(0, 900, 1, 3).selectExpr(
        "id % 30 AS k",
        "id AS v"
      ).createOrReplaceTempView(name)
    table("target")
    table("source")
    session.conf.set("spark.aqepilot.policies", "test")
    def splits(side: String): (Boolean, Seq[Row]) = {
      val parts = s"transform($side.bytes_by_partition_id, b -> 2)"
      session.conf.set(
        "spark.aqepilot.policy.test.skew_join",
        s"named_struct('${side}_splits', $parts)"
      )
      val query = session.sql("SELECT t.v, s.v FROM target t JOIN source s ON t.k = s.k")
      assert(query.collect().length == 27000)
      val reason = "SELECT max_by(reason, decision_id) FROM aqepilot_decisions()"
      (isSplit(query.queryExecution.executedPlan), session.sql(reason).collect().toSeq)
    }
    assert(splits("right") == (true, Seq(Row("APPLIED"))))
    KeptWhole.isOn = true
    assert(splits("right") == (false, Seq(Row("NOT_ADMITTED"))))
    assert(splits("left") == (true, Seq(Row("APPLIED"))))
  }
}
