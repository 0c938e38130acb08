package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.expressions.{
  ArrayRepeat,
  CallMethodViaReflection,
  Expression,
  HigherOrderFunction,
  Sequence,
  UserDefinedExpression
}
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution
import org.apache.spark.sql.execution.{
  AppendColumnsExec,
  DeserializeToObjectExec,
  ObjectProducerExec,
  SparkPlan
}
import org.apache.spark.sql.types.ObjectType

/** What in an operator may work on a row for long, whatever the row's bytes. */
object DearRows {

  /** Where Spark has its operators that run Python. */
  private val Python = "org.apache.spark.sql.execution.python."

  /** Where Spark has the expressions that it plans SQL to; libraries have theirs elsewhere, some beneath `org.apache.spark.sql`. */
  private val SparksExpressions = Seq(
    "org.apache.spark.sql.catalyst.",
    "org.apache.spark.sql.execution.",
    "org.apache.spark.sql.hive.",
    "org.apache.spark.sql.aqepilot."
  )

  /** Whose methods Spark calls to turn rows into objects and back. */
  private val Sparks = Seq("org.apache.spark.", "java.", "scala.")

  def runsPython(plan: SparkPlan): Boolean = plan.getClass.getName.startsWith(Python)

  /** Whether the user's function is called once for a group of rows: in pandas, Arrow, R or the JVM. */
  def runsOnGroups(plan: SparkPlan): Boolean =
    (runsPython(plan) || runsOnObjects(plan)) &&
      plan.requiredChildDistribution.exists(_.isInstanceOf[ClusteredDistribution])

  /** Whether code in the JVM that is not Spark's sees the rows. */
  def runsJvmFunction(plan: SparkPlan): Boolean =
    runsOnObjects(plan) || (!runsPython(plan) && plan.expressions.exists(_.exists(isOthers)))

  /** Whether a row's own bytes do not bound the steps that an expression takes for it: it makes an array, or walks one that is constant, or one
    * for each element of another.
    */
  def loops(plan: SparkPlan): Boolean = plan.expressions.exists(_.exists {
    case _: Sequence | _: ArrayRepeat => true
    case h: HigherOrderFunction       =>
      h.arguments.exists(_.foldable) ||
      h.functions.exists(_.exists(_.isInstanceOf[HigherOrderFunction]))
    case _ => false
  })

  /** `DeserializeToObjectExec` hands rows to an RDD, whose code no plan shows. */
  private def runsOnObjects(plan: SparkPlan): Boolean = plan match {
    case _: DeserializeToObjectExec => false
    case p: ObjectProducerExec      => p.children.nonEmpty
    case _: AppendColumnsExec       => true
    case _                          => false
  }

  private def isOthers(e: Expression): Boolean = e match {
    case _: UserDefinedExpression | _: CallMethodViaReflection => true
    case s: StaticInvoke => !Sparks.exists(s.staticObject.getName.startsWith)
    case i: Invoke       => i.targetObject.dataType match {
        case ObjectType(cls) => !Sparks.exists(cls.getName.startsWith)
        case _               => false
      }
    case _ => !isSparks.get(e.getClass)
  }

  private val isSparks = new ClassValue[java.lang.Boolean] {
    override def computeValue(expression: Class[_]): java.lang.Boolean =
      SparksExpressions.exists(expression.getName.startsWith)
  }
}
