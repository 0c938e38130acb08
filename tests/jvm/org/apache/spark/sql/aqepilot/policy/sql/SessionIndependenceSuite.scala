package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.types.{BooleanType, LongType}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A session's settings, functions and tables do not change what a policy means. */
class SessionIndependenceSuite extends AnyFunSuite with SampleFacts with BeforeAndAfterAll {

  private lazy val spark = SparkSession
    .builder()
    .master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .withExtensions(
      _.injectFunction(
        (
          FunctionIdentifier(AqePilotBytes.name),
          AqePilotBytes.info,
          args => AqePilotBytes.build(args.toSeq)
        )
      )
    )
    .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private val odd = Seq(
    Seq("spark.sql.ansi.enabled" -> "false", "spark.sql.session.timeZone" -> "Asia/Tokyo"),
    Seq("spark.sql.ansi.enabled" -> "true", "spark.sql.caseSensitive" -> "true"),
    Seq(
      "spark.sql.ansi.enabled" -> "true",
      "spark.sql.ansi.enforceReservedKeywords" -> "true",
      "spark.sql.ansi.doubleQuotedIdentifiers" -> "true",
      "spark.sql.parser.escapedStringLiterals" -> "true",
      "spark.sql.optimizer.excludedRules" ->
        "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
      "spark.sql.storeAssignmentPolicy" -> "LEGACY"
    )
  )

  odd.zipWithIndex.foreach { case (settings, i) =>
    test(s"the same answers under ${settings.mkString(", ")}") {
      val unique = s"/* $i */ " // so that nothing comes from the cache
      try {
        settings.foreach { case (key, value) => spark.conf.set(key, value) }
        val checks = Seq(
          "string(SIDE.Max_Bytes) || \"q\"" -> "60q",
          "CASE WHEN \"a\\tb\" = concat('a', char(9), 'b') THEN 'tab' END" -> "tab",
          "nullif(upper(join.type), 'x')" -> "INNER"
        )
        checks.foreach { case (text, expected) =>
          assert(answer(unique + text) == expected)
          assert(answer(text) == expected)
        }
        val overflow = unique + "side.max_bytes + 9223372036854775807L"
        assert(compiled(overflow, LongType).eval(row(1)).isLeft)
        assert(compiled(unique + "CAST(join.type AS bigint)", LongType).eval(row(1)).isLeft)
        assert(compiled(unique + "1 / (side.max_bytes - 1) > 0", BooleanType).eval(row(1)).isLeft)
        assert(spark.range(3).count() == 3)
      } finally settings.foreach { case (key, _) => spark.conf.unset(key) }
    }
  }

  test("a session's functions are not visible, not even under a built-in's name") {
    spark.udf.register("upper", (_: String) => "from the session")
    spark.udf.register("mine", (_: String) => "from the session")
    assert(spark.sql("SELECT mine('a')").head().getString(0) == "from the session")
    assert(answer("/* session */ upper(join.type)") == "INNER")
    assert(refused("mine(join.type)").code == PolicyError.UnknownFunction)
  }

  test("a session's views are not visible") {
    spark.range(1).createOrReplaceTempView("join")
    assert(refused("/* session */ join.id").code == PolicyError.UnknownFact)
  }

  test("a session's state is as before a compilation") {
    val before = spark.sessionState.conf.getAllConfs
    answer("/* state */ upper(join.type)")
    assert(spark.sessionState.conf.getAllConfs == before)
    assert(SparkSession.active eq spark)
  }

  test("aqepilot_bytes works in SQL, and no plan holds a class of ours") {
    val query = spark.sql("SELECT id FROM range(10) WHERE id < aqepilot_bytes('1k') - 1020")
    assert(query.count() == 4)
    assert(!query.queryExecution.optimizedPlan.toString.contains("aqepilot"))
    val error = intercept[Exception](spark.sql("SELECT aqepilot_bytes(id) FROM range(10)"))
    assert(error.getMessage.contains("'64MB', '1g', '512k'"))
  }
}
