package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.DataType

/** Stands for an expression, and does something about its evaluation. */
private[policy] trait Around extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = child.dataType
  override def nullable: Boolean = child.nullable
}

/** An expression whose evaluations and values are counted. */
final private[policy] case class Metered(child: Expression, meter: Meter) extends Around {

  override def eval(input: InternalRow): Any = {
    meter.step()
    val value = child.eval(input)
    meter.charge(value)
    value
  }

  override protected def withNewChildInternal(newChild: Expression): Metered =
    copy(child = newChild)
}

private[policy] object Metered {

  /** The same expression, to be run by one thread at a time after its meter was started.
    *
    * Counted are the bodies of lambdas, which Spark evaluates for each element, and the values that functions make.
    * Regular expressions run under the clock. To be applied last: no rule of Spark's knows these expressions.
    */
  def apply(expression: Expression): Metered = {
    val meter = new Meter
    Metered(inner(expression, meter), meter)
  }

  private def inner(e: Expression, meter: Meter): Expression = e match {
    case LambdaFunction(body, arguments, hidden) =>
      LambdaFunction(Metered(inner(body, meter), meter), arguments, hidden)
    case leaf if leaf.children.isEmpty => leaf
    case _                             =>
      val timed = TimedRegex.around(e.mapChildren(inner(_, meter)), meter)
      if (makesValue(e)) Metered(timed, meter) else timed
  }

  /** Whether the expression makes a value of any size, and does not hand one on. */
  private def makesValue(e: Expression): Boolean = e match {
    case _: GetStructField | _: GetArrayItem | _: ElementAt | _: If | _: CaseWhen | _: Coalesce =>
      false
    case _ => ValueSize.isAny(e.dataType)
  }
}
