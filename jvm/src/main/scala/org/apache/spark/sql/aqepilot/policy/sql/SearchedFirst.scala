package org.apache.spark.sql.aqepilot.policy.sql

import java.util.regex.{Pattern, PatternSyntaxException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.unsafe.types.UTF8String

/** How a regular expression is looked for. */
sealed private[policy] trait Search

private[policy] object Search {
  case object First extends Search
  case object All extends Search
  final case class Like(escape: Char) extends Search
}

private[policy] object SearchedFirst {

  /** Of what a function keeps of each match. */
  val MatchBytes = 48L
}

/** Searches a text under the meter before an expression does it unwatched: what backtracks for ever does so here, where
  * it is ended.
  *
  * @param subject
  *   the text, a part of `child`
  * @param by
  *   what is put in the place of each match
  */
final private[policy] case class SearchedFirst(
    child: Expression,
    subject: Expression,
    patterns: Seq[Expression],
    search: Search,
    meter: Meter,
    by: Option[Expression] = None
) extends LookingFirst {

  @transient private var last: (String, Pattern) = _

  override protected def look(input: InternalRow): Unit =
    subject.eval(input) match {
      case text: UTF8String =>
        by.foreach(b => meter.compare(ValueSize.parts(text), ValueSize.parts(b.eval(input))))
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
      case Search.All     =>
        while (matcher.find()) {
          meter.step()
          meter.hold(SearchedFirst.MatchBytes)
        }
    }
  }

  /** None for what is no regular expression: Spark's own expression says so. */
  private def compiled(regex: String): Option[Pattern] =
    if (last != null && last._1 == regex) Some(last._2)
    else
      try {
        if (!search.isInstanceOf[Search.Like] && RegexCost.isTooHigh(regex))
          meter.tooSlow("Its regular expression can match nothing in too many ways.")
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
