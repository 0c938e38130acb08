package org.apache.spark.sql.aqepilot.policy.sql

import org.scalatest.funsuite.AnyFunSuite

class RegexCostSuite extends AnyFunSuite {

  test("what people write is not too dear") {
    Seq(
      "",
      (1 to 2000).map(i => s"table_$i").mkString("|"),
      "^(sales|orders|items)_(eu|us|asia)_\\d{4}-\\d{2}-\\d{2}$",
      "(25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.(25[0-5]|2[0-4]\\d|1?\\d?\\d)){3}",
      "[(|){999}]{2}\\(\\|\\Q(|)(|){999}{999}{999}\\E" + "\\|" * 100,
      "no ) group | ( of it"
    ).foreach(regex => assert(!RegexCost.isTooHigh(regex), regex))
  }

  test("choices and repetitions of nothing are") {
    Seq(
      "(|)" * 30,
      "(?:|){30}",
      "(?:(?:|){6}){6}",
      "(x*|y*){1,40}",
      "(?:(?:){2000}){2000}",
      "(?:){0002000000}"
    ).foreach(regex => assert(RegexCost.isTooHigh(regex), regex))
  }
}
