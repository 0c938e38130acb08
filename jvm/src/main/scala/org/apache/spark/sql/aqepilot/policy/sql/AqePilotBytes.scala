package org.apache.spark.sql.aqepilot.policy.sql

import scala.util.control.NonFatal

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.aqepilot.spark.Refusal
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.types.StringType

/** The SQL function `aqepilot_bytes('64MB')`: a size in Spark's notation as a bigint of bytes, a plain literal.
  *
  * Source: Spark's `JavaUtils.byteStringAsBytes`, which reads sizes in Spark's settings.
  */
object AqePilotBytes
    extends ScalarFunction(
      "aqepilot_bytes",
      "_FUNC_(size) - Returns a size such as '64MB' as a number of bytes.",
      """
      |    Arguments:
      |      * size - a constant string: a whole number and a unit (b, k, m, g, t, p)
    """.stripMargin,
      """
      |    Examples:
      |      > SELECT _FUNC_('64MB');
      |       67108864
    """.stripMargin
    ) {

  private val Allowed =
    "Write a whole number and a unit in quotes: '64MB', '1g', '512k' (b, k, m, g, t, p; " +
      "powers of 1024; no unit means bytes)."

  override def build(args: Seq[Expression]): Expression = args match {
    case Seq(size) if size.resolved && size.foldable && size.dataType.isInstanceOf[StringType] =>
      val value = size.eval()
      if (value == null) refuse(size, "NULL is no size.") else Literal(parse(size, value.toString))
    case Seq(other) =>
      refuse(other, s"It takes a constant string, not ${ErrorText.shorten(other.sql, 50)}.")
    case _ =>
      throw new Refusal(s"$name takes one argument, not ${args.length}. $Allowed", None, None)
  }

  private def parse(size: Expression, text: String): Long =
    try JavaUtils.byteStringAsBytes(text)
    catch {
      case NonFatal(_) => refuse(size, s"'${ErrorText.shorten(text, 50)}' is no size.")
    }

  private def refuse(at: Expression, why: String): Nothing =
    throw new Refusal(s"$name: $why $Allowed", at.origin.line, at.origin.startPosition)
}
