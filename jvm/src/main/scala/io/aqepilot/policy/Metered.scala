package io.aqepilot.policy

import java.util.regex.{Pattern, PatternSyntaxException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.{StringUtils, TypeUtils}
import org.apache.spark.sql.types.{ArrayType, BinaryType, DataType, MapType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** Stands for a part, and does something about its evaluation. */
sealed private[policy] trait Around extends UnaryExpression with CodegenFallback {
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
sealed private[policy] trait LookingFirst extends Around {

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
      val within = e.mapChildren(inner(_, meter))
      val watched =
        if (watch(within, meter) ne within) watch(within.mapChildren(held), meter) else within
      if (isMade(e)) Metered(watched, meter) else watched
  }

  /** Whether a value of any size is made here, and not handed on. */
  private def isMade(e: Expression): Boolean = e.dataType match {
    case _: StringType | _: ArrayType | _: MapType | BinaryType =>
      e match {
        case _: GetStructField | _: GetArrayItem | _: ElementAt | _: If | _: CaseWhen | _: Coalesce =>
          false
        case _ => true
      }
    case _ => false
  }

  private def held(argument: Expression) =
    if (argument.children.isEmpty) argument else Held(argument)

  private def watch(e: Expression, meter: Meter): Expression = e match {
    case RLike(subject, regex)       => SearchedFirst(e, subject, Seq(regex), Search.First, meter)
    case Like(subject, like, escape) =>
      SearchedFirst(e, subject, Seq(like), Search.Like(escape), meter)
    case LikeAll(subject, patterns)    => searchedLike(e, subject, patterns, meter)
    case LikeAny(subject, patterns)    => searchedLike(e, subject, patterns, meter)
    case NotLikeAll(subject, patterns) => searchedLike(e, subject, patterns, meter)
    case NotLikeAny(subject, patterns) => searchedLike(e, subject, patterns, meter)
    case r: RegExpReplace          => SearchedFirst(e, r.subject, Seq(r.regexp), Search.All, meter)
    case r: RegExpExtractBase      => SearchedFirst(e, r.subject, Seq(r.regexp), Search.All, meter)
    case StringSplit(s, regex, _)  => SearchedFirst(e, s, Seq(regex), Search.All, meter)
    case StringToMap(s, pair, key) => SearchedFirst(e, s, Seq(pair, key), Search.All, meter)
    case l: Levenshtein            => Compared(e, l.left, l.right, meter)
    case b: BinaryExpression if isByPairs(b, b.left.dataType) => Compared(e, b.left, b.right, meter)
    case d: ArrayDistinct if comparesEach(d.child.dataType) => Compared(e, d.child, d.child, meter)
    case _                                                  => e
  }

  private def searchedLike(
      e: Expression,
      subject: Expression,
      patterns: Seq[UTF8String],
      meter: Meter
  ) = {
    val searched = patterns.filter(_ != null).map(Literal(_, StringType))
    SearchedFirst(e, subject, searched, Search.Like('\\'), meter)
  }

  private def isByPairs(e: Expression, of: DataType) = e match {
    case _: ArrayUnion | _: ArrayIntersect | _: ArrayExcept | _: ArraysOverlap => comparesEach(of)
    case _                                                                     => false
  }

  /** Spark hashes plain values only. */
  private def comparesEach(of: DataType) = of match {
    case ArrayType(element, _) => !TypeUtils.typeWithProperEquals(element)
    case _                     => false
  }
}

/** How a regular expression is looked for. */
sealed private[policy] trait Search

private[policy] object Search {
  case object First extends Search
  case object All extends Search
  final case class Like(escape: Char) extends Search
}

/** Searches a text under the meter before an expression does it unwatched: what backtracks for ever does so here, where
  * it is ended.
  *
  * @param subject
  *   the text, a part of `child`
  */
final private[policy] case class SearchedFirst(
    child: Expression,
    subject: Expression,
    patterns: Seq[Expression],
    search: Search,
    meter: Meter
) extends LookingFirst {

  @transient private var last: (String, Pattern) = _

  override protected def look(input: InternalRow): Unit =
    subject.eval(input) match {
      case text: UTF8String =>
        patterns.foreach(_.eval(input) match {
          case regex: UTF8String => searched(text.toString, regex.toString)
          case _                 =>
        })
      case _ =>
    }

  private def searched(text: String, regex: String): Unit = compiled(regex).foreach { pattern =>
    val matcher = pattern.matcher(new Watched(text, 0, text.length, meter))
    search match {
      case Search.First   => matcher.find()
      case Search.Like(_) => matcher.matches()
      case Search.All     => while (matcher.find()) meter.step()
    }
  }

  /** None for what is no regular expression: Spark's own expression says so. */
  private def compiled(regex: String): Option[Pattern] =
    if (last != null && last._1 == regex) Some(last._2)
    else
      try {
        last = (
          regex,
          search match {
            case Search.Like(escape) =>
              Pattern.compile(StringUtils.escapeLikeRegex(regex, escape), Pattern.DOTALL)
            case _ => Pattern.compile(regex)
          }
        )
        Some(last._2)
      } catch {
        case _: PatternSyntaxException | _: org.apache.spark.SparkThrowable => None
      }

  override protected def withNewChildInternal(newChild: Expression): SearchedFirst =
    copy(child = newChild)
}

/** A text whose reader is counted. */
final private class Watched(text: String, from: Int, until: Int, meter: Meter)
    extends CharSequence {

  private var read = 0

  override def length: Int = until - from

  override def charAt(index: Int): Char = {
    read += 1
    if ((read & 63) == 0) meter.step()
    text.charAt(from + index)
  }

  override def subSequence(start: Int, end: Int): CharSequence =
    new Watched(text, from + start, from + end, meter)

  override def toString: String = text.substring(from, until)
}

/** Looks at the sizes of two values before an expression compares each part of one with each of the other.
  *
  * @param one
  *   a part of `child`
  */
final private[policy] case class Compared(
    child: Expression,
    one: Expression,
    other: Expression,
    meter: Meter
) extends LookingFirst {

  override protected def look(input: InternalRow): Unit =
    meter.compare(one.eval(input), other.eval(input))

  override protected def withNewChildInternal(newChild: Expression): Compared =
    copy(child = newChild)
}
