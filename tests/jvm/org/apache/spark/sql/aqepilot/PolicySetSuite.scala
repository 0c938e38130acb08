package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.DynamicJoinSelectionPoint
import org.scalatest.funsuite.AnyFunSuite

class PolicySetSuite extends AnyFunSuite {

  private def set(in: SQLConf, mode: String): SQLConf = {
    in.setConfString(AqePilotConf.Policies.key, "race")
    in.setConfString("spark.aqepilot.policy.race.dynamic_join_selection", "'SHUFFLE_HASH'")
    in.setConfString(AqePilotConf.Mode.key, mode)
    in
  }

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
    assert(PolicySet.of(changing).at(DynamicJoinSelectionPoint).isEmpty)
    assert(PolicySet.of(changing).at(DynamicJoinSelectionPoint).size === 1)
    assert(PolicySet.of(set(new SQLConf, "off")).at(DynamicJoinSelectionPoint).isEmpty)
  }
}
