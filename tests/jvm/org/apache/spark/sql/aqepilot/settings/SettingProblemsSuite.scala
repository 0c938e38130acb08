package org.apache.spark.sql.aqepilot.settings

import org.scalatest.funsuite.AnyFunSuite

class SettingProblemsSuite extends AnyFunSuite {

  private def problems(settings: (String, String)*): Seq[String] =
    SettingProblems.of(settings.toMap, Seq("skew_join", "dynamic_join_selection")).map(p =>
      s"${p.code} ${p.message}"
    )

  test("good settings have no problems") {
    assert(
      problems(
        "spark.sql.shuffle.partitions" -> "x",
        "spark.aqepilot.mode" -> "shadow",
        "spark.aqepilot.guard.growth" -> "3",
        "spark.aqepilot.guard.max_broadcast_bytes" -> "64m",
        "spark.aqepilot.policies" -> "a, b",
        "spark.aqepilot.policy.a.dynamic_join_selection" -> "NULL",
        "spark.aqepilot.policy.b.when" -> "true"
      ) === Nil
    )
  }

  Seq(
    ("spark.aqepilot.mode", "on", "MODE_INVALID"),
    ("spark.aqepilot.strict", "yes", "SETTING_INVALID"),
    ("spark.aqepilot.guard.growth", "0.5", "SETTING_INVALID"),
    ("spark.aqepilot.guard.growth", "NaN", "SETTING_INVALID"),
    ("spark.aqepilot.guard.max_broadcast_bytes", "-1", "SETTING_INVALID"),
    ("spark.aqepilot.guard.max_broadcast_bytes", "lots", "SETTING_INVALID"),
    ("spark.aqepilot.policies", "Sales", "SETTING_INVALID"),
    ("spark.aqepilot.polices", "a", "SETTING_UNKNOWN"),
    ("spark.aqepilot.policy.Sales.dynamic_join_selection", "NULL", "POLICY_NAME_INVALID"),
    ("spark.aqepilot.policy.a.dynamic_join_selektion", "NULL", "POLICY_POINT_UNKNOWN"),
    ("spark.aqepilot.policy.a.dynamic_join_selection", "NULL", "POLICY_NOT_LISTED")
  ).foreach {
    case (key, value, code) =>
      test(s"$key=$value is $code and the message names it") {
        val wrong = problems(key -> value)
        assert(wrong.length === 1)
        assert(wrong.head.startsWith(code + " ") && wrong.head.contains(key))
      }
  }

  test("the list that would name a policy has each name once, whoever named it before") {
    val wrong = problems(
      "spark.aqepilot.policies" -> "b,c",
      "spark.aqepilot.experiment.name" -> "e",
      "spark.aqepilot.experiment.arms" -> "b:50,b+c:50",
      "spark.aqepilot.policy.a.skew_join" -> "NULL"
    )
    assert(wrong.exists(_.endsWith("Add --conf spark.aqepilot.policies=b,c,a")), wrong)
  }

  test("the nearest known name is offered") {
    assert(problems("spark.aqepilot.polices" -> "a").head.contains("spark.aqepilot.policies?"))
    assert(
      problems("spark.aqepilot.policy.a.dynamic_join_selektion" -> "NULL").head
        .contains("did you mean dynamic_join_selection?")
    )
  }
}
