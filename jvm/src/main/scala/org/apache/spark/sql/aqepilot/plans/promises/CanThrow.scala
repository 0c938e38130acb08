package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/** Whether an expression could throw for some row: then it must not be evaluated on rows that Spark's own plan has
  * dropped by then.
  *
  * Under ANSI, the default from 4.0 on, a division, an overflow and many casts throw. What is not known to be
  * harmless counts as throwing: functions of users, patterns, look-ups in arrays. Spark 4's
  * `Expression.throwable` is no help: only a few expressions say it of themselves.
  */
object CanThrow {

  def apply(expression: Expression): Boolean = !isHarmless(expression)

  private def isHarmless(e: Expression): Boolean =
    isHarmlessItself(e) && e.children.forall(isHarmless)

  private def isHarmlessItself(e: Expression): Boolean = e match {
    case _: Attribute | _: Literal | _: GetStructField                           => true
    case _: And | _: Or | _: Not | _: BinaryComparison | _: In | _: InSet        => true
    case _: IsNull | _: IsNotNull | _: IsNaN | _: Coalesce | _: If | _: CaseWhen => true
    case _: Greatest | _: Least | _: NaNvl | _: KnownNotNull | _: KnownFloatingPointNormalized =>
      true
    case _: StartsWith | _: EndsWith | _: Contains                                     => true
    case _: Upper | _: Lower | _: Length | _: Substring                                => true
    case _: StringTrim | _: StringTrimLeft | _: StringTrimRight                        => true
    case _: DateAdd | _: DateSub | _: DateDiff                                         => true
    case _: Year | _: Quarter | _: Month | _: DayOfMonth | _: DayOfYear | _: DayOfWeek => true
    case _: BitwiseAnd | _: BitwiseOr | _: BitwiseXor | _: BitwiseNot                  => true
    case _: Murmur3Hash | _: XxHash64                                                  => true
    // One value, found before the rows are looked at, whatever the order.
    case s: ScalarSubquery => s.children.isEmpty
    case c: Cast           => isHarmlessCast(c)
    // Of intervals they are exact, whatever the mode: only numbers wrap around.
    case _: Add | _: Subtract | _: Multiply | _: UnaryMinus | _: Abs =>
      e.dataType.isInstanceOf[NumericType] && !failsOnError(e) || isFloating(e.dataType)
    case d: Divide => !failsOnError(e) || isFloating(e.dataType) && isNotZero(d.right)
    // They throw at a zero, and no result is too large.
    case r: Remainder      => !failsOnError(e) || !isDecimal(e.dataType) && isNotZero(r.right)
    case p: Pmod           => !failsOnError(e) || !isDecimal(e.dataType) && isNotZero(p.right)
    case _: IntegralDivide => !failsOnError(e)
    case _                 => false
  }

  private def isNotZero(divisor: Expression) = divisor match {
    case Literal(number: Number, _) => number.doubleValue != 0
    case _                          => false
  }

  private def isDecimal(dataType: DataType) = dataType.isInstanceOf[DecimalType]

  private def isFloating(dataType: DataType) = dataType == DoubleType || dataType == FloatType

  private def isHarmlessCast(cast: Cast): Boolean = {
    val from = cast.child.dataType
    (isPlain(from) && isPlain(cast.dataType)) &&
    // Far dates have no timestamp.
    cast.dataType != TimestampType && cast.dataType != TimestampNTZType &&
    (!failsOnError(cast) || Cast.canUpCast(from, cast.dataType) ||
      from.isInstanceOf[NumericType] && isFloating(cast.dataType))
  }

  private def isPlain(dataType: DataType) = dataType match {
    case _: NumericType | _: StringType | BooleanType | DateType | TimestampType | TimestampNTZType =>
      true
    case _ => false
  }

  /** Each of these classes says it in a parameter, of another kind in 3.5 than in 4.x: an evaluation mode, a
    * context that holds one, or a flag.
    */
  private def failsOnError(e: Expression): Boolean = e.productIterator.exists {
    case _: Expression    => false
    case flag: Boolean    => flag
    case context: Product => context.productIterator.contains(EvalMode.ANSI)
    case mode             => mode == EvalMode.ANSI
  }
}
