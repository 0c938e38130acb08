package org.apache.spark.sql.aqepilot.record

import java.nio.file.Files
import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.scheduler._
import org.apache.spark.sql.aqepilot.ThreadState
import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.policy.python.SessionFunctions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.{AqePilotCostEvaluator, Cost, CostEvaluator}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.AqePilotExtension

/** Each hook leaves its thread, a user's or Spark's, as it was. */
class ThreadStateSuite extends AnyFunSuite with BeforeAndAfterAll {

  private val called = new ConcurrentLinkedQueue[String]
  private val changed = new ConcurrentLinkedQueue[String]

  /** Looks at the thread before and after; what the hook throws goes on. */
  private def watched[T](name: String)(hook: => T): T = {
    called.add(name)
    var outcome: Either[Throwable, T] = null
    ThreadState
      .changes {
        outcome =
          try Right(hook)
          catch { case e: Throwable => Left(e) }
      }
      .foreach(change => changed.add(s"$name changed $change"))
    outcome.fold(throw _, identity)
  }

  /** The hooks as our extension registers them, watched. */
  private class Watched(to: SparkSessionExtensions) extends SparkSessionExtensions {
    private def plans(rule: Rule[SparkPlan]): Rule[SparkPlan] = new Rule[SparkPlan] {
      override def apply(plan: SparkPlan): SparkPlan = watched(name(rule))(rule(plan))
    }
    private def logicals(rule: Rule[LogicalPlan]): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = watched(name(rule))(rule(plan))
    }
    private def name(value: AnyRef) = value.getClass.getSimpleName.stripSuffix("$")

    override def injectPreCBORule(builder: RuleBuilder): Unit =
      to.injectPreCBORule(s => logicals(builder(s)))
    override def injectRuntimeOptimizerRule(builder: RuleBuilder): Unit =
      to.injectRuntimeOptimizerRule(s => logicals(builder(s)))
    override def injectPlannerStrategy(builder: StrategyBuilder): Unit =
      to.injectPlannerStrategy { s =>
        val strategy = builder(s)
        new SparkStrategy {
          override def apply(plan: LogicalPlan): Seq[SparkPlan] =
            watched(name(strategy))(strategy(plan))
        }
      }
    override def injectQueryPostPlannerStrategyRule(
        builder: QueryPostPlannerStrategyBuilder
    ): Unit = to.injectQueryPostPlannerStrategyRule(s => plans(builder(s)))
    override def injectQueryStagePrepRule(builder: QueryStagePrepRuleBuilder): Unit =
      to.injectQueryStagePrepRule(s => plans(builder(s)))
    override def injectQueryStageOptimizerRule(builder: QueryStageOptimizerRuleBuilder): Unit =
      to.injectQueryStageOptimizerRule(s => plans(builder(s)))
    override def injectFunction(function: FunctionDescription): Unit = to.injectFunction(
      (function._1, function._2, args => watched(function._1.funcName)(function._3(args)))
    )
    override def injectTableFunction(function: TableFunctionDescription): Unit =
      to.injectTableFunction(
        (function._1, function._2, args => watched(function._1.funcName)(function._3(args)))
      )
  }

  private class WatchedListener(recorder: QueryRecorder) extends SparkListener {
    override def onJobStart(e: SparkListenerJobStart): Unit =
      watched("onJobStart")(recorder.onJobStart(e))
    override def onTaskEnd(e: SparkListenerTaskEnd): Unit =
      watched("onTaskEnd")(recorder.onTaskEnd(e))
    override def onApplicationEnd(e: SparkListenerApplicationEnd): Unit =
      watched("onApplicationEnd")(recorder.onApplicationEnd(e))
    override def onOtherEvent(e: SparkListenerEvent): Unit =
      watched("onOtherEvent")(recorder.onOtherEvent(e))
  }

  private lazy val spark: SparkSession = {
    val conf = new SparkConf()
      .setMaster("local[2]")
      .setAppName("threads")
      .set("spark.ui.enabled", "false")
      .set("spark.pyspark.python", "python3")
      .set("spark.aqepilot.ask.deadline", "20s")
    new SparkContext(conf) // as it is there when Spark applies the extensions that a setting names
    val session = SparkSession
      .builder()
      .config("spark.sql.shuffle.partitions", "8")
      .config("spark.sql.autoBroadcastJoinThreshold", "-1")
      .config("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB")
      .withExtensions(e => new AqePilotExtension()(new Watched(e)))
      .getOrCreate()
    val bus = session.sparkContext.listenerBus
    DecisionLog.of(session.sparkContext)
    bus.findListenersByClass[QueryRecorder]().foreach { recorder =>
      bus.removeListener(recorder)
      bus.addToQueue(new WatchedListener(recorder), DecisionLog.Queue)
    }
    val make = AqePilotCostEvaluator.Factory.get()
    AqePilotCostEvaluator.Factory.set { (conf: SparkConf) =>
      val evaluator = watched("cost evaluator")(make(conf))
      new CostEvaluator {
        override def evaluateCost(plan: SparkPlan): Cost =
          watched("evaluateCost")(evaluator.evaluateCost(plan))
      }
    }
    session
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def set(name: String, part: String, text: String): Unit =
    spark.conf.set(s"spark.aqepilot.policy.$name.$part", text)

  /** Facts that each point has, in a sum that is null nowhere. */
  private val known = "cluster.default_parallelism"

  private val answers = Map(
    "dynamic_join_selection" -> "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END",
    "skew_join" -> "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> 2))",
    "partition_coalescing" -> "named_struct('target_bytes', 2000L, 'min_partitions', 1)",
    "shuffle_partitions" -> "6",
    "cost_evaluation" -> "1.0",
    "join_selection" -> "'SHUFFLE_MERGE'",
    "join_reorder" -> "double(candidate.position)",
    "write_distribution" -> "true"
  )

  test("what a hook changes is seen") {
    def seen(hook: => Any) = ThreadState.changes(hook).map(_.takeWhile(_ != ':'))
    val own = Thread.currentThread.getContextClassLoader
    assert(seen(()) === Nil)
    assert(seen(Thread.currentThread.interrupt()) === Seq("interrupt") && Thread.interrupted())
    try assert(seen(Thread.currentThread.setContextClassLoader(null)) === Seq("class loader"))
    finally Thread.currentThread.setContextClassLoader(own)
    val sc = spark.sparkContext
    try assert(seen(sc.setJobDescription("x")) === Seq("local properties"))
    finally sc.setJobDescription(null)
    val key = org.apache.spark.sql.catalyst.trees.CurrentOrigin
    assert(seen(key.set(key.get.copy(line = Some(1)))).contains("origin"))
  }

  test("no hook changes what Spark keeps of the thread, whatever a policy does") {
    val folder = Files.createTempDirectory("aqepilot-threads")
    Files.write(
      folder.resolve("thread_functions.py"),
      "def none(facts):\n    return None\n\ndef fails(facts):\n    raise ValueError('x')\n".getBytes
    )
    Seq("none", "fails").foreach { f =>
      SessionFunctions.ofDriver.allow(
        "0" * 32,
        null,
        s"python:thread_functions:$f",
        folder.toString,
        ""
      )
    }
    spark.conf.set("spark.aqepilot.python.token", "0" * 32)
    DecisionPoints.all.foreach { point =>
      val divided = s"1 / ($known - $known) > 0"
      set("broken", point.name, "no_such_fact +")
      set("throws", point.name, s"CASE WHEN $divided THEN ${answers(point.name)} END")
      set("python_none", point.name, "python:thread_functions:none")
      set("python_fails", point.name, "python:thread_functions:fails")
      set("answers", point.name, answers(point.name))
    }
    set("unmeant", "shuffle_partitions", "7")
    set("unmeant", "when", "1 / (length(query.app_name) - length(query.app_name)) > 0")
    spark.conf.set(
      "spark.aqepilot.policies",
      "broken,unmeant,throws,python_none,python_fails,answers"
    )

    val a = spark.range(0, 20000, 1, 4).selectExpr("if(id < 15000, 7, id % 50) AS k", "id AS n")
    val b = spark.range(0, 500, 1, 2).selectExpr("id % 50 AS k", "id % 20 AS j")
    val c = spark.range(0, 20, 1, 2).selectExpr("id AS j")
    val rows = a.join(b, "k").join(c, "j").groupBy("j").count().collect()
    assert(rows.length === 20)
    b.write.parquet(folder.resolve("written").toString)
    spark.sql("SELECT aqepilot_bytes('1m')").collect()
    spark.sql("SELECT * FROM aqepilot_status()").collect()
    spark.sql("SELECT * FROM aqepilot_check('shuffle_partitions', '1 +')").collect()
    spark.sql("SELECT * FROM aqepilot_check('shuffle_partitions', 'python:no_such:f')").collect()
    val query = DecisionPoints.whenFacts("query").dataType.sql
    Seq("query.app_name = 'x'", "1 +").foreach { text =>
      val facts = s"named_struct('query', CAST(NULL AS $query))"
      scala.util.Try(spark.sql(s"""SELECT aqepilot_answer('when', "$text", $facts)""").collect())
    }
    intercept[Exception] {
      spark.sql("SELECT * FROM aqepilot_decide('shuffle_partitions', '1 +', '{}')").collect()
    }
    spark.sql("SELECT * FROM aqepilot_decide('shuffle_partitions', '7', '{}')").collect()
    val decided = spark.sql("SELECT point, policy, reason FROM aqepilot_decisions()").collect()
    // A context that stops takes these from all threads, in the middle of a hook if it comes to that.
    spark.sparkContext.listenerBus.waitUntilEmpty()
    SparkSession.clearDefaultSession()
    spark.stop()

    assert(changed.toArray.distinct.toSeq === Nil)
    assert(
      called.toArray.toSet[Any] === Set(
        "ReorderJoins",
        "DistributeWrites",
        "DistributeV2Writes",
        "JoinIdentity",
        "SelectJoin",
        "RequiredDistribution",
        "SelectJoinDynamically",
        "KeepSortMerge",
        "SplitSkewedJoins",
        "SetShufflePartitions",
        "PlannedJoins",
        "FinalStage",
        "CoalesceShuffleReads",
        "MatchingReads",
        "aqepilot_bytes",
        "aqepilot_status",
        "aqepilot_check",
        "aqepilot_answer",
        "aqepilot_decide",
        "aqepilot_decisions",
        "cost evaluator",
        "evaluateCost",
        "onJobStart",
        "onTaskEnd",
        "onApplicationEnd",
        "onOtherEvent"
      )
    )
    for (point <- DecisionPoints.names) {
      val there = decided.filter(_.getString(0) == point).map(_.getString(1)).toSet
      assert(Set("throws", "python_fails", "answers").subsetOf(there), point)
    }
    assert(decided.exists(_.getString(1) == "unmeant"))
  }
}
