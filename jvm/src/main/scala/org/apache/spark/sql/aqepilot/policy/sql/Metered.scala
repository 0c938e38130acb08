package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.DataType

/** Stands for a part, and does something about its evaluation. */
private[policy] trait Around extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = child.dataType
  override def nullable: Boolean = child.nullable
}

/** A part whose evaluations and values are counted. */
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

/** Bytes of the arguments that a function has been given. */
final private[policy] class Arguments extends Serializable {
  @transient var bytes = 0L
}

/** An argument whose size is counted. */
final private[policy] case class Given(child: Expression, all: Arguments, meter: Meter)
    extends Around {

  override def eval(input: InternalRow): Any = {
    val value = child.eval(input)
    val size = ValueSize.of(value, Meter.MaxArgumentBytes)
    all.bytes += size
    meter.give(size, all.bytes)
    value
  }

  override protected def withNewChildInternal(newChild: Expression): Given = copy(child = newChild)
}

/** A function whose arguments are counted anew each time.
  *
  * @param literals
  *   bytes of the arguments that are constants
  */
final private[policy] case class Called(child: Expression, arguments: Arguments, literals: Long)
    extends Around {

  override def eval(input: InternalRow): Any = {
    arguments.bytes = literals
    child.eval(input)
  }

  override protected def withNewChildInternal(newChild: Expression): Called =
    copy(child = newChild)
}

/** An argument that is evaluated once while it is held: who looks at it first, and the function after that, have the
  * same value. Else arguments within arguments would be evaluated twice as often at each level.
  */
final private[policy] case class Held(child: Expression) extends Around {

  @transient private var isHeld = false
  @transient private var isKnown = false
  @transient private var value: Any = _

  def hold(): Unit = isHeld = true

  def release(): Unit = {
    isHeld = false
    isKnown = false
    value = null
  }

  override def eval(input: InternalRow): Any =
    if (!isHeld) child.eval(input)
    else {
      if (!isKnown) {
        value = child.eval(input)
        isKnown = true
      }
      value
    }

  override protected def withNewChildInternal(newChild: Expression): Held = copy(child = newChild)
}

/** Looks at a function's arguments before the function does. */
private[policy] trait LookingFirst extends Around {

  protected def look(input: InternalRow): Unit

  override def eval(input: InternalRow): Any = {
    val held = child.children.collect { case h: Held => h }
    held.foreach(_.hold())
    try {
      look(input)
      child.eval(input)
    } finally held.foreach(_.release())
  }
}

private[policy] object Metered {

  /** The same expression, to be run by one thread at a time after its meter was started.
    *
    * What takes long are the bodies of lambdas, regular expressions, and comparisons of each with each; what takes memory
    * are values that a part makes. To be applied last: no rule of Spark's knows these parts.
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
      val called = counting(e.mapChildren(inner(_, meter)), meter)
      if (isMade(e)) Metered(called, meter) else called
  }

  /** Whether a value of any size is made here, and not handed on. */
  private def isMade(e: Expression): Boolean = ValueSize.isAny(e.dataType) && !isHandedOn(e)

  private def isHandedOn(e: Expression): Boolean = e match {
    case _: GetStructField | _: GetArrayItem | _: ElementAt | _: If | _: CaseWhen | _: Coalesce =>
      true
    case _ => false
  }

  /** With its arguments counted, and looked at where it needs that. */
  private def counting(e: Expression, meter: Meter): Expression = {
    val arguments = new Arguments
    val counted = if (isGoneThrough(e)) e.mapChildren(argument(_, arguments, meter)) else e
    val looked =
      if (Looks.at(counted, meter) eq counted) counted
      else Looks.at(counted.mapChildren(held), meter)
    if (counted eq e) looked
    else {
      val literals = e.children.collect { case l: Literal => ValueSize.of(l.value, Long.MaxValue) }
      Called(looked, arguments, literals.sum)
    }
  }

  /** Whether a function goes through its arguments by itself; a lambda's evaluations are counted one by one. */
  private def isGoneThrough(e: Expression): Boolean = e match {
    case _: HigherOrderFunction | _: Size | _: GetMapValue | _: GetArrayStructFields => false
    case _: CreateArray | _: CreateNamedStruct | _: IsNull | _: IsNotNull            => false
    case _ => !isHandedOn(e)
  }

  private def argument(e: Expression, arguments: Arguments, meter: Meter) = e match {
    case _: Literal | _: LambdaFunction   => e
    case _ if ValueSize.isAny(e.dataType) => Given(e, arguments, meter)
    case _                                => e
  }

  private def held(argument: Expression) = argument match {
    case _: LambdaFunction             => argument
    case leaf if leaf.children.isEmpty => leaf
    case _                             => Held(argument)
  }
}
