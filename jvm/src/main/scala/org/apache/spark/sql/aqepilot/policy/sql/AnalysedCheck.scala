package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.expressions.{
  ArrayDistinct,
  ArrayExcept,
  ArrayIntersect,
  ArrayUnion,
  ArraysOverlap,
  Cast,
  Expression,
  LeafExpression,
  PlanExpression,
  RoundBase,
  UserDefinedExpression
}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._

/** Checks an analysed expression: types, and what a name or keyword stands for. */
private[policy] object AnalysedCheck {
  import PolicyError._
  import TextCheck.refuse

  private val MaxDigits = 1000

  /** @param answers the types that are allowed
    * @param whole the place of the expression, for what concerns all of it
    * @return the first of those types that the expression has
    * @throws TextCheck.Refused at the first part that is not allowed
    */
  def apply(analysed: Expression, answers: Seq[DataType], whole: Origin): DataType = {
    analysed.foreach(e => checkPart(e, if (e.origin.line.isDefined) e.origin else whole))
    answers.find(admits(analysed.dataType, _)).getOrElse {
      val (actual, wanted) =
        (analysed.dataType.simpleString, answers.map(_.simpleString).mkString(" or "))
      refuse(
        WrongAnswerType,
        s"The answer must be a $wanted (or NULL, which leaves it to Spark), but this is a " +
          s"${ErrorText.shorten(actual, 100)}. It is not cast silently.",
        whole
      )
    }
  }

  private def checkPart(e: Expression, at: Origin): Unit = e match {
    case _: UserDefinedExpression =>
      refuse(FunctionNotAllowed, "User-defined functions are not allowed in a policy.", at)
    case _: PlanExpression[_] =>
      refuse(NotScalar, "Subqueries are not allowed in a policy.", at)
    case _ if e.children.forall(_.deterministic) && !e.deterministic =>
      refuse(NotPure, s"'${e.prettyName}' does not always give the same answer.", at)
    case leaf: LeafExpression if leaf.getClass.getSimpleName.startsWith("Current") =>
      refuse(NotPure, s"'${e.prettyName}' depends on more than the facts.", at)
    case round: RoundBase if digits(round).exists(math.abs(_) > MaxDigits) =>
      refuse(
        FunctionNotAllowed,
        s"'${e.prettyName}' takes a number of digits up to $MaxDigits, and this is ${digits(round).get}.",
        at
      )
    case _ if comparesEach(e) =>
      refuse(
        FunctionNotAllowed,
        s"'${e.prettyName}' compares each element with each other one, unless they are numbers or texts.",
        at
      )
    case c: Cast
        if c.getTagValue(StructAnswer.field).isDefined && !admits(c.child.dataType, c.dataType) =>
      refuse(
        WrongAnswerType,
        s"The field '${c.getTagValue(StructAnswer.field).get}' takes a ${c.dataType.simpleString} (or " +
          s"NULL), but this is a ${ErrorText.shorten(c.child.dataType.simpleString, 100)}. It is not " +
          "cast silently.",
        at
      )
    case _ if e.resolved && holdsTime(e.dataType) =>
      refuse(NotPure, TextCheck.noDates, at)
    case _ =>
  }

  // DateType and the like by name: TIME is not in every Spark.
  private def holdsTime(dataType: DataType): Boolean = dataType match {
    case array: ArrayType   => holdsTime(array.elementType)
    case map: MapType       => holdsTime(map.keyType) || holdsTime(map.valueType)
    case struct: StructType => struct.fields.exists(f => holdsTime(f.dataType))
    case other => other.typeName.startsWith("date") || other.typeName.startsWith("time")
  }

  /** A constant, by Spark's own rule. */
  private def digits(round: RoundBase): Option[Long] =
    Option(round.children(1).eval()).collect { case scale: Int => scale.toLong }

  /** Spark hashes numbers and texts only: the others take time by the square of their number. */
  private def comparesEach(e: Expression): Boolean = e match {
    case _: ArrayDistinct | _: ArrayUnion | _: ArrayIntersect | _: ArrayExcept | _: ArraysOverlap =>
      e.children.map(_.dataType).exists {
        case ArrayType(NullType, _) => false
        case ArrayType(element, _)  => !TypeUtils.typeWithProperEquals(element)
        case _                      => false
      }
    case _ => false
  }

  /** The same type, NULL, or a number that the answer's type holds without loss (a decimal for a
    * double included, since 0.5 is a decimal in Spark).
    */
  def admits(actual: DataType, answer: DataType): Boolean = (actual, answer) match {
    case (NullType, _)                                               => true
    case (_: NumericType, DoubleType)                                => true
    case (ArrayType(a, _), ArrayType(b, _)) if a != b                => admits(a, b)
    case _ if integers.contains(answer) && integers.contains(actual) =>
      integers.indexOf(actual) <= integers.indexOf(answer)
    case _ => sameShape(actual, answer)
  }

  private val integers = Seq(ByteType, ShortType, IntegerType, LongType)

  // Nullability is no matter: null means that Spark decides.
  private def sameShape(a: DataType, b: DataType): Boolean = (a, b) match {
    case (x: ArrayType, y: ArrayType)   => sameShape(x.elementType, y.elementType)
    case (x: StructType, y: StructType) =>
      x.length == y.length && x.fields.zip(y.fields).forall { case (f, g) =>
        f.name.equalsIgnoreCase(g.name) && sameShape(f.dataType, g.dataType)
      }
    case _ => a == b
  }
}
