package org.apache.spark.sql.aqepilot.sql

import org.apache.spark.sql.SparkSession
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** What Spark's patterns hide in the record and under SET, `aqepilot_status()` hides from every session. */
class StatusRedactionSuite extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = SparkSession
    .builder()
    .master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.aqepilot.AqePilotExtension")
    .config("spark.sql.redaction.string.regex", "sesame9")
    .config("spark.aqepilot.policies", "sales,my_token,plain")
    // By the text, by the name and with an error that quotes the text, and by the pattern of texts.
    .config(
      "spark.aqepilot.policy.sales.skew_join",
      "CASE WHEN query.app_name = 'password sesame1' THEN named_struct('skew_factor', 2.0D) END"
    )
    .config("spark.aqepilot.policy.my_token.shuffle_partitions", "sesame2 + 1")
    .config("spark.aqepilot.policy.my_token.mode", "sesame3")
    .config("spark.aqepilot.policy.plain.when", "query.user = 'sesame9'")
    .config("spark.aqepilot.policy.plain.shuffle_partitions", "sesame9 + 1")
    .config("spark.aqepilot.policy.plain.join_selection", "'SHUFFLE_HASH'")
    .config("spark.aqepilot.python.token", "sesame4")
    .config("spark.aqepilot.job", "sesame9 daily")
    .getOrCreate()

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def rows(session: SparkSession) = session
    .sql("SELECT kind, name, value, detail FROM aqepilot_status()")
    .collect()
    .toSeq

  test("no secret of the submitted settings is shown, whatever the session's own pattern") {
    val other = spark.newSession()
    other.conf.set("spark.sql.redaction.string.regex", "nothing")
    for (session <- Seq(spark, other)) {
      val shown = rows(session)
      val secrets = shown.filter(_.toString.contains("sesame"))
      assert(secrets.isEmpty, secrets.mkString("\n"))
      // What is no secret is there, and each policy still says how it is.
      def of(name: String) = shown.find(_.getString(1) == name).get
      assert(of("plain.join_selection").getString(3).contains("SHUFFLE_HASH"))
      assert(of("sales.skew_join").getString(2) == "enforce")
      assert(of("my_token.shuffle_partitions").getString(2) == "error")
      assert(of("plain.shuffle_partitions").getString(3).contains("(redacted) + 1"))
      assert(shown.exists(r => r.getString(0) == "problem" && r.toString.contains("my_token")))
      assert(of("job").getString(2).endsWith("(redacted) daily"))
    }
  }
}
