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
  private val events = mutable.Buffer.empty[AqePilotExperiment]

  private def running(arms: String, rails: String = "failed_queries:1,driver_time:20"): Running = {
    events.clear()
    val experiment =
      Experiment("e", Experiment.parseArms(arms).toOption.get, Experiment.QueryRun, "")
    val rules = StoppingRules.parse(rails).toOption.get
    new Running(
      Definition(
        Some(experiment),
        Some(experiment.control),
        "task_ms",
        rules,
        None,
        None,
        None,
        Nil
      ),
      _ => InternalRow.empty,
      events += _
    )
  }

  /** A unit that drew this arm, as yet unexposed. */
  private def unit(app: Running, arm: String, from: Int = 0): Assigned =
    Iterator.from(from).map(i => s"u$i").find(app.experiment.armOf(_).name == arm)
      .flatMap(app.assigned(_, run, None)).get

  private def states = events.map(e => (e.what, e.arm)).toSeq

  /** The other arms say something else. */
  private def differ(unit: Assigned): Unit = {
    val others = unit.experiment.others(unit).map(_ -> PolicySet.empty)
    new ComparedArms(unit, unit.inForce, others)
      .compare(DynamicJoinSelectionPoint, None, Some(SideHint("BROADCAST")))(_ => None)
  }

  test("once an arm is stopped, units are exposed whatever they drew, or none is") {
    val app = running("spark:50,wide:50")
    val first = unit(app, "wide")
    differ(first)
    app.closed(first, hasFailed = true, 1000, 0)
    assert(states.last === ("stopped" -> "wide"))
    val later = Seq("spark", "wide").map(unit(app, _, 1000))
    later.foreach(differ)
    assert(later.map(_.isExposed) === Seq(false, false))
    assert(later.map(_.inForce.name) === Seq("spark", "spark"))
  }

  test("of three arms, those that are left are compared for all units alike") {
    val app = running("spark:40,wide:30,same:30")
    val first = unit(app, "wide")
    differ(first)
    app.closed(first, hasFailed = true, 1000, 0)
    def others(arm: String) = app.others(unit(app, arm, 1000)).map(_.name)
    assert(others("spark") === Seq("same"))
    assert(others("wide") === Seq("same"))
    assert(others("same") === Seq("spark"))
  }

  test("who looked an arm up before it was stopped exposes nobody by it any more") {
    val app = running("spark:50,wide:50")
    val (first, other) = (unit(app, "wide"), unit(app, "spark"))
    val before = new ComparedArms(other, other.inForce, Seq(first.arm -> PolicySet.empty))
    differ(first)
    app.closed(first, hasFailed = true, 1000, 0)
    before.compare(DynamicJoinSelectionPoint, None, Some(SideHint("BROADCAST")))(_ =>
      None
    )
    assert(!other.isExposed)
  }

  test("a failure before a unit is exposed stops no arm") {
    val app = running("spark:50,wide:50")
    val assigned = unit(app, "wide")
    app.closed(assigned, hasFailed = true, 1000, 0)
    assert(assigned.inForce.name === "wide")
    differ(assigned)
    assert(assigned.isExposed)
    app.closed(assigned, hasFailed = true, 1000, 0)
    assert(assigned.inForce.name === "spark")
    assert(states === Seq("assigned" -> "wide", "exposed" -> "wide", "stopped" -> "wide"))
  }

  test("the control's failures stop nobody") {
    val app = running("spark:50,wide:50")
    val assigned = unit(app, "spark")
    differ(assigned)
    app.closed(assigned, hasFailed = true, 1000, 0)
    assert(states.map(_._1) === Seq("assigned", "exposed"))
  }

  test("the time for which all arms were asked counts, in units of each arm alike") {
    Seq("spark", "wide").foreach { drawn =>
      val app = running("spark:50,wide:50")
      val assigned = unit(app, drawn)
      assigned.askedBeside(11L * 1000 * 1000 * 1000)
      app.closed(assigned, hasFailed = false, 60000, 2e6)
      assert(states.last === ("stopped" -> "wide"), drawn)
      assert(events.last.detail.get.startsWith("asking took 21.7 %"), drawn)
      assert(app.others(assigned) === Nil)
    }
  }

  test("a session has the arms' policies as they were submitted, and their modes") {
    val app = running("spark:50,wide+more:50")
    val submitted = Map("spark.aqepilot.policy.wide.join_selection" -> "'BROADCAST'")
    def has(more: (String, String)*) =
      app.hasSubmitted((submitted ++ more).get, submitted.get)
    assert(has())
    assert(has("spark.aqepilot.policy.other.join_selection" -> "'SHUFFLE_MERGE'"))
    assert(!has("spark.aqepilot.policy.wide.join_selection" -> "'SHUFFLE_MERGE'"))
    assert(!has("spark.aqepilot.policy.more.when" -> "true"))
    assert(!has("spark.aqepilot.policy.wide.mode" -> "shadow"))
    assert(!has("spark.aqepilot.mode" -> "off"))
  }

  test("a query's unit is what it was while it ran") {
    val app = running("spark:50,wide:50")
    val assigned = unit(app, "wide")
    app.keep(7, Some(assigned))
    app.keep(7, None)
    app.keep(8, None)
    assert(app.kept(7) === Some(Some(assigned)))
    assert(app.kept(8) === Some(None))
    assert(app.kept(9) === None)
  }

  test("an arm that is not stopped is in force") {
    val app = running("spark:50,wide:50")
    assert(app.experiment.arms.map(app.inForce) === Seq(Arm("spark", 5000), Arm("wide", 5000)))
  }
}
