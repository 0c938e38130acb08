package org.apache.spark.sql.aqepilot.run

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.{
  DynamicJoinSelectionPoint,
  SideHint
}
import org.apache.spark.sql.aqepilot.policy.PolicySet
import org.apache.spark.sql.aqepilot.settings.{Arm, Experiment, Found, RunIdentity, StoppingRules}
import org.apache.spark.sql.catalyst.InternalRow
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.AqePilotExperiment

/** Which units are exposed, and what ends an arm: neither may depend on the arm that a unit drew. */
class RunningSuite extends AnyFunSuite {

  private val run = RunIdentity(Found("job", "test"), Found("run", "test"), None)
  private val told = mutable.Buffer.empty[AqePilotExperiment]

  private def running(arms: String, rails: String = "failed_queries:1,driver_time:20"): Running = {
    told.clear()
    val of = Experiment("e", Experiment.parseArms(arms).toOption.get, Experiment.QueryRun, "")
    val rules = StoppingRules.parse(rails).toOption.get
    new Running(
      Definition(Some(of), Some(of.control), "task_ms", rules, None, None, None, Nil),
      _ => InternalRow.empty,
      told += _
    )
  }

  /** A unit that drew this arm, as yet unexposed. */
  private def unit(of: Running, arm: String, from: Int = 0): Assigned =
    Iterator.from(from).map(i => s"u$i").find(of.experiment.armOf(_).name == arm)
      .flatMap(of.assigned(_, run, None)).get

  private def states = told.map(e => (e.what, e.arm)).toSeq

  /** The other arms say something else. */
  private def differ(unit: Assigned): Unit = {
    val others = unit.experiment.others(unit).map(_ -> PolicySet.empty)
    new ComparedArms(unit, unit.inForce, others)
      .compare(DynamicJoinSelectionPoint, None, Some(SideHint("BROADCAST")))(_ => None)
  }

  test("once an arm is stopped, units are exposed whatever they drew, or none is") {
    val of = running("spark:50,wide:50")
    val first = unit(of, "wide")
    differ(first)
    of.closed(first, hasFailed = true, 1000, 0)
    assert(states.last === ("stopped" -> "wide"))
    val later = Seq("spark", "wide").map(unit(of, _, 1000))
    later.foreach(differ)
    assert(later.map(_.isExposed) === Seq(false, false))
    assert(later.map(_.inForce.name) === Seq("spark", "spark"))
  }

  test("of three arms, those that are left are compared for all units alike") {
    val of = running("spark:40,wide:30,same:30")
    val first = unit(of, "wide")
    differ(first)
    of.closed(first, hasFailed = true, 1000, 0)
    def others(arm: String) = of.others(unit(of, arm, 1000)).map(_.name)
    assert(others("spark") === Seq("same"))
    assert(others("wide") === Seq("same"))
    assert(others("same") === Seq("spark"))
  }

  test("who looked an arm up before it was stopped exposes nobody by it any more") {
    val of = running("spark:50,wide:50")
    val (first, other) = (unit(of, "wide"), unit(of, "spark"))
    val before = new ComparedArms(other, other.inForce, Seq(first.arm -> PolicySet.empty))
    differ(first)
    of.closed(first, hasFailed = true, 1000, 0)
    before.compare(DynamicJoinSelectionPoint, None, Some(SideHint("BROADCAST")))(_ =>
      None
    )
    assert(!other.isExposed)
  }

  test("a failure before a unit is exposed stops no arm") {
    val of = running("spark:50,wide:50")
    val its = unit(of, "wide")
    of.closed(its, hasFailed = true, 1000, 0)
    assert(its.inForce.name === "wide")
    differ(its)
    assert(its.isExposed)
    of.closed(its, hasFailed = true, 1000, 0)
    assert(its.inForce.name === "spark")
    assert(states === Seq("assigned" -> "wide", "exposed" -> "wide", "stopped" -> "wide"))
  }

  test("the control's failures stop nobody") {
    val of = running("spark:50,wide:50")
    val its = unit(of, "spark")
    differ(its)
    of.closed(its, hasFailed = true, 1000, 0)
    assert(states.map(_._1) === Seq("assigned", "exposed"))
  }

  test("the time for which all arms were asked counts, in units of each arm alike") {
    Seq("spark", "wide").foreach { drawn =>
      val of = running("spark:50,wide:50")
      val its = unit(of, drawn)
      its.askedBeside(11L * 1000 * 1000 * 1000)
      of.closed(its, hasFailed = false, 60000, 2e6)
      assert(states.last === ("stopped" -> "wide"), drawn)
      assert(told.last.detail.get.startsWith("asking took 21.7 %"), drawn)
      assert(of.others(its) === Nil)
    }
  }

  test("a session has the arms' policies as they were submitted, and their modes") {
    val of = running("spark:50,wide+more:50")
    val submitted = Map("spark.aqepilot.policy.wide.join_selection" -> "'BROADCAST'")
    def has(more: (String, String)*) =
      of.hasSubmitted((submitted ++ more).get, submitted.get)
    assert(has())
    assert(has("spark.aqepilot.policy.other.join_selection" -> "'SHUFFLE_MERGE'"))
    assert(!has("spark.aqepilot.policy.wide.join_selection" -> "'SHUFFLE_MERGE'"))
    assert(!has("spark.aqepilot.policy.more.when" -> "true"))
    assert(!has("spark.aqepilot.policy.wide.mode" -> "shadow"))
    assert(!has("spark.aqepilot.mode" -> "off"))
  }

  test("a query's unit is what it was while it ran") {
    val of = running("spark:50,wide:50")
    val its = unit(of, "wide")
    of.keep(7, Some(its))
    of.keep(7, None)
    of.keep(8, None)
    assert(of.kept(7) === Some(Some(its)))
    assert(of.kept(8) === Some(None))
    assert(of.kept(9) === None)
  }

  test("an arm that is not stopped is in force") {
    val of = running("spark:50,wide:50")
    assert(of.experiment.arms.map(of.inForce) === Seq(Arm("spark", 5000), Arm("wide", 5000)))
  }
}
