package org.apache.spark.sql.aqepilot.rule

import java.lang.reflect.Modifier

import org.apache.spark.sql.aqepilot.decision.Health
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** A rule that Spark asks an extension for when it makes a session, which must not fail: where a vendor's Spark
  * lacks the hook or what a rule is made of, a rule that does nothing stands for it.
  *
  * @param points
  *   the names of those that cannot do without it, and are off then
  */
final class Registered(points: Seq[String]) {

  def logical(rule: => Rule[LogicalPlan]): Rule[LogicalPlan] =
    orElse[Rule[LogicalPlan]](NoLogicalRule)(rule)

  def physical(rule: => Rule[SparkPlan]): Rule[SparkPlan] =
    orElse[Rule[SparkPlan]](NoPhysicalRule)(rule)

  def strategy(strategy: => SparkStrategy): SparkStrategy =
    orElse[SparkStrategy](NoStrategy)(strategy)

  private val name = Registered.named(points)

  private def orElse[T <: AnyRef](none: => T)(made: => T): T =
    FailOpen.recover(name) { fault =>
      Health.after(fault, points: _*)
      none
    }(Registered.whole(made))
}

object Registered {

  /** Registers for some points, by their names. Nothing, where not even a rule that does nothing could stand in, and
    * where none of the points can be linked: Spark would fail when it calls their rule.
    */
  def at(points: String*)(register: Registered => Unit): Unit =
    FailOpen.recover(named(points))(Health.after(_, points: _*)) {
      standIns
      if (points.isEmpty || points.exists(Health.isLinked)) register(new Registered(points))
    }

  private def named(points: Seq[String]): String =
    if (points.isEmpty) "rule" else points.mkString(", ")

  private lazy val standIns: Unit =
    Seq[AnyRef](NoLogicalRule, NoPhysicalRule, NoStrategy).foreach(whole(_))

  /** What Spark may call.
    *
    * @throws java.lang.AbstractMethodError
    *   in this Spark it has a method more
    */
  def whole[T <: AnyRef](made: T): T = {
    val lacking = lacks.get(made.getClass)
    if (lacking != null)
      throw new AbstractMethodError(s"${made.getClass.getName} has no $lacking")
    made
  }

  /** The name of a method that a class lacks, looked for once: Spark asks for strategies at each planning. */
  private val lacks = new ClassValue[String] {
    override def computeValue(theirs: Class[_]): String =
      theirs.getMethods.find(m => Modifier.isAbstract(m.getModifiers)).fold[String](null)(_.getName)
  }
}

private object NoLogicalRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan
}

private object NoPhysicalRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = plan
}

private object NoStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = Nil
}
