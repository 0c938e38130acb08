package org.apache.spark.sql.aqepilot.policy.sql

import java.util.regex.{Pattern, PatternSyntaxException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/** Searches a text under the meter's clock before Spark's own function does it without one.
  *
  * A regular expression that backtracks for hours does so here, where reading a character can end it.
  *
  * @param child the function; its arguments that both evaluate are [[Once]]s
  * @param regexes what is searched for: arguments of the function, or literals
  */
final private[policy] case class TimedRegex(
    child: Expression,
    regexes: Seq[Expression],
    search: TimedRegex.Search,
    meter: Meter
) extends Around {
  import TimedRegex._

  @transient private lazy val arguments = child.children.collect { case once: Once => once }
  @transient private var last: (String, Option[Pattern]) = _

  override def eval(input: InternalRow): Any =
    try {
      child.children.head.eval(input) match {
        case subject: UTF8String => regexes.foreach(r => searchFor(r.eval(input), subject.toString))
        case _                   =>
      }
      child.eval(input)
    } finally arguments.foreach(_.forget())

  private def searchFor(regex: Any, subject: String): Unit = regex match {
    case text: UTF8String => compiled(text.toString).foreach { pattern =>
        val matcher = pattern.matcher(new TimedText(subject, 0, subject.length, meter))
        search match {
          case First    => matcher.find()
          case All      => while (matcher.find()) meter.step()
          case Whole(_) => matcher.matches()
        }
      }
    case _ =>
  }

  /** None for what is no regular expression: Spark's function says so. */
  private def compiled(regex: String): Option[Pattern] = {
    if (last == null || last._1 != regex) last = (
      regex,
      try Some(Pattern.compile(search match {
          case Whole(escape) => StringUtils.escapeLikeRegex(regex, escape)
          case _             => regex
        }))
      catch { case _: PatternSyntaxException | _: org.apache.spark.SparkThrowable => None }
    )
    last._2
  }

  override protected def withNewChildInternal(newChild: Expression): TimedRegex =
    copy(child = newChild)
}

private[policy] object TimedRegex {

  /** How a function searches. */
  sealed trait Search
  case object First extends Search
  case object All extends Search
  final case class Whole(escape: Char) extends Search

  /** Surrounds a function that searches by a regular expression; other expressions stay as they are. */
  def around(e: Expression, meter: Meter): Expression = e match {
    case _: RLike                                                 => byArgument(e, First, meter)
    case _: RegExpReplace | _: RegExpExtractBase | _: StringSplit => byArgument(e, All, meter)
    case Like(_, _, escape)      => byArgument(e, Whole(escape), meter)
    case LikeAll(_, patterns)    => byPatterns(e, patterns, meter)
    case LikeAny(_, patterns)    => byPatterns(e, patterns, meter)
    case NotLikeAll(_, patterns) => byPatterns(e, patterns, meter)
    case NotLikeAny(_, patterns) => byPatterns(e, patterns, meter)
    case _                       => e
  }

  private def byArgument(e: Expression, search: Search, meter: Meter) = {
    val function = e.mapChildren(once)
    TimedRegex(function, Seq(function.children(1)), search, meter)
  }

  private def byPatterns(e: Expression, patterns: Seq[UTF8String], meter: Meter) = TimedRegex(
    e.mapChildren(once),
    patterns.filter(_ != null).map(Literal(_, StringType)),
    Whole('\\'),
    meter
  )

  private def once(argument: Expression) =
    if (argument.children.isEmpty) argument else Once(argument)
}

/** An argument that is evaluated once until it is forgotten. */
final private[policy] case class Once(child: Expression) extends Around {

  @transient private var isKnown = false
  @transient private var value: Any = _

  def forget(): Unit = {
    isKnown = false
    value = null
  }

  override def eval(input: InternalRow): Any = {
    if (!isKnown) {
      value = child.eval(input)
      isKnown = true
    }
    value
  }

  override protected def withNewChildInternal(newChild: Expression): Once = copy(child = newChild)
}

/** A text that looks at the clock as its characters are read. */
final private class TimedText(text: String, from: Int, until: Int, meter: Meter)
    extends CharSequence {

  private var reads = 0

  override def length: Int = until - from

  override def charAt(index: Int): Char = {
    reads += 1
    if ((reads & 63) == 0) meter.step()
    text.charAt(from + index)
  }

  override def subSequence(start: Int, end: Int): CharSequence =
    new TimedText(text, from + start, from + end, meter)

  override def toString: String = text.substring(from, until)
}
