package org.apache.spark.sql.aqepilot.policy

import java.time.{LocalDate, ZoneOffset}

import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.Recent
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

class ConfiguredPoliciesSuite extends AnyFunSuite {

  private def set(in: SQLConf, mode: String): SQLConf = {
    in.setConfString(AqePilotConf.Policies.key, "race")
    in.setConfString("spark.aqepilot.policy.race.dynamic_join_selection", "'SHUFFLE_HASH'")
    in.setConfString(AqePilotConf.Mode.key, mode)
    in
  }

  private def configured(conf: SQLConf): PolicySet =
    ConfiguredPolicies.of(conf, conf.getConfString(AqePilotConf.Policies.key))

  /** Its mode is taken away as soon as it was read. */
  private class Changing extends SQLConf {
    override def getConfString(key: String, otherwise: String): String = {
      val value = super.getConfString(key, otherwise)
      if (key == AqePilotConf.Mode.key) unsetConf(key)
      value
    }
  }

  test("a mode that changes while a set is loaded does not reach those who have set another") {
    val changing = set(new Changing, "off")
    assert(configured(changing).at(DynamicJoinSelectionPoint).isEmpty)
    assert(configured(changing).at(DynamicJoinSelectionPoint).size === 1)
    assert(configured(set(new SQLConf, "off")).at(DynamicJoinSelectionPoint).isEmpty)
  }

  test("a policy is asked until the day on which it expires, and says then that it is not") {
    def until(expires: String): PolicySet = {
      val conf = set(new SQLConf, "enforce")
      conf.setConfString("spark.aqepilot.policy.race.expires", expires)
      configured(conf)
    }
    val today = LocalDate.now(ZoneOffset.UTC)
    assert(until(today.plusDays(2).toString).at(DynamicJoinSelectionPoint).size === 1)
    Seq(today.toString -> "POLICY_EXPIRED", "soon" -> "SETTING_INVALID").foreach {
      case (expires, problem) =>
        val set = until(expires)
        assert(set.at(DynamicJoinSelectionPoint).isEmpty)
        assert(set.policies.flatMap(_.limit).head.contains(expires))
        assert(set.problems.map(_.code) === Seq(problem))
    }
  }

  test("of a text that is too long its beginning is kept, and it is refused as before") {
    val conf = set(new SQLConf, "enforce")
    conf.setConfString("spark.aqepilot.policy.race.skew_join", "'" + "x" * 20000000 + "'")
    val policies = configured(conf).policies
    assert(policies.map(_.text.length).max < 1100000)
    assert(policies.flatMap(_.error).map(_.code) === Seq(PolicyError.TooLong))
  }

  test("policies without an end are not asked, and say so") {
    val many = set(new SQLConf, "enforce")
    many.setConfString(AqePilotConf.Policies.key, (1 to 5000).map("p" + _).mkString(","))
    val long = set(new SQLConf, "enforce")
    val names = (1 to 9).map("p" + _)
    long.setConfString(AqePilotConf.Policies.key, names.mkString(","))
    names.foreach(n => long.setConfString(s"spark.aqepilot.policy.$n.skew_join", "x" * 1000000))
    Seq(many, long).foreach { conf =>
      val set = configured(conf)
      assert(set.policies.isEmpty)
      assert(set.problems.map(_.code) === Seq("POLICY_TEXT_INVALID"))
    }
  }

  test("keys are kept as far as their weight goes") {
    val kept = Recent.weighed[String, Int](3, 10)(_.length.toLong)
    Seq("aaaa", "bbbb", "aaaa", "cccc").zipWithIndex.foreach { case (k, i) => kept.put(k, i) }
    assert(kept.keySet.toArray.toSeq === Seq("aaaa", "cccc"))
    kept.put("x" * 11, 0)
    assert(kept.isEmpty)
    Seq("a", "b", "c", "d").foreach(kept.put(_, 0))
    assert(kept.size === 3)
  }
}
