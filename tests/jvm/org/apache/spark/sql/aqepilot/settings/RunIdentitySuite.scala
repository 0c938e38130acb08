package org.apache.spark.sql.aqepilot.settings

import org.scalatest.funsuite.AnyFunSuite

class RunIdentitySuite extends AnyFunSuite {

  private val lineage = Map(
    "spark.openlineage.parentJobName" -> "lineage.job",
    "spark.openlineage.parentRunId" -> "0195-a"
  )
  private val airflow = Map(
    "AIRFLOW_CTX_DAG_ID" -> "daily",
    "AIRFLOW_CTX_TASK_ID" -> "sales",
    "AIRFLOW_CTX_DAG_RUN_ID" -> "scheduled__2026-11-23",
    "AIRFLOW_CTX_TRY_NUMBER" -> "1"
  )
  private val own = Map("spark.aqepilot.job" -> "mine", "spark.aqepilot.run" -> "7")

  private def of(settings: Map[String, String], environment: Map[String, String] = Map.empty) =
    RunIdentity.of(settings.get, environment.get, "app", "app-1")

  private def named(run: RunIdentity) =
    (run.job.value, run.job.source, run.run.value, run.run.source)

  test("each source alone names job and run") {
    assert(named(of(own)) === (("mine", "SETTING", "7", "SETTING")))
    assert(named(of(lineage)) === (("lineage.job", "OPENLINEAGE", "0195-a", "OPENLINEAGE")))
    assert(
      named(of(Map.empty, airflow)) ===
        (("daily.sales", "AIRFLOW", "scheduled__2026-11-23", "AIRFLOW"))
    )
    assert(named(of(Map.empty)) === (("app", "UNKNOWN_RUN", "app-1", "UNKNOWN_RUN")))
  }

  test("of several sources the first that says it holds, for job and run by themselves") {
    assert(named(of(own ++ lineage, airflow))._1 === "mine")
    assert(named(of(lineage, airflow)) === named(of(lineage)))
    val partly = of(own - "spark.aqepilot.run", airflow)
    assert(named(partly) === (("mine", "SETTING", "scheduled__2026-11-23", "AIRFLOW")))
    assert(named(of(own.map { case (key, _) => key -> " " }, airflow - "AIRFLOW_CTX_TASK_ID")) ===
      (("app", "UNKNOWN_RUN", "scheduled__2026-11-23", "AIRFLOW")))
  }

  test("a dbt model is the job, unless a setting names one; the run stays") {
    val model = Some("model.shop.orders")
    assert(named(of(lineage, airflow).ofModel(model)) ===
      (("model.shop.orders", "DBT", "0195-a", "OPENLINEAGE")))
    assert(named(of(own).ofModel(model)) === named(of(own)))
    assert(of(lineage).ofModel(None) === of(lineage))
  }

  test("a run is a retry by whatever says so") {
    def attempt(settings: (String, String)*)(environment: (String, String)*) =
      of(settings.toMap, environment.toMap).attempt.map(f => (f.value, f.source))
    assert(attempt()() === None)
    assert(attempt("spark.app.attempt.id" -> "2")() === Some((2, "spark.app.attempt.id")))
    assert(
      attempt("spark.app.attempt.id" -> "1")("AIRFLOW_CTX_TRY_NUMBER" -> "3") ===
        Some((3, "AIRFLOW_CTX_TRY_NUMBER"))
    )
    assert(
      attempt("spark.app.attempt.id" -> "2")("AIRFLOW_CTX_TRY_NUMBER" -> "1") ===
        Some((2, "spark.app.attempt.id"))
    )
    assert(
      attempt("spark.aqepilot.attempt" -> "1", "spark.app.attempt.id" -> "2")(
        "AIRFLOW_CTX_TRY_NUMBER" -> "3"
      ) === Some((1, "spark.aqepilot.attempt"))
    )
    assert(attempt("spark.aqepilot.attempt" -> "first")("AIRFLOW_CTX_TRY_NUMBER" -> "0") === None)
    assert(!of(Map.empty, airflow).isRetry)
    assert(of(Map("spark.aqepilot.attempt" -> "2")).isRetry)
  }
}
