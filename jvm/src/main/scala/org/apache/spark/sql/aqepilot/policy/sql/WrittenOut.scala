package org.apache.spark.sql.aqepilot.policy.sql

import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeReference,
  Expression,
  RuntimeReplaceable
}
import org.apache.spark.sql.types._

/** How much longer an expression becomes when Spark writes out the functions that are short for others. Spark 3.5's
  * `nullif(a, b)` is `if(a = b, null, a)`: `a` is there twice, and in a nullif within a nullif four times.
  */
private[policy] object WrittenOut {
  private val MaxMore = 2000

  // Those that are short for others have a few arguments.
  private val MaxArguments = 8
  private val types = Seq(StringType, IntegerType, BooleanType, ArrayType(IntegerType))
  private val known = new ConcurrentHashMap[(String, Int), Seq[Int]]

  /** @param parsed
    *   of a size and depth that [[ExpressionSize]] admits
    * @throws TextCheck.Refused
    */
  def check(parsed: Expression): Unit = {
    val (parts, written) = sizes(parsed)
    if (written - parts > MaxMore)
      TextCheck.refuse(
        PolicyError.TooComplex,
        s"Functions that Spark writes out (as nullif(a, b), which is if(a = b, null, a)) stand within each other, and " +
          s"would take more than $MaxMore further parts: write it flatter.",
        parsed.origin
      )
  }

  /** Parts as written by the author, and by Spark. */
  private def sizes(e: Expression): (Double, Double) = {
    val (children, uses) = e match {
      case f: UnresolvedFunction => (f.arguments, usesOf(f.nameParts.last, f.arguments.size))
      case other                 => (other.children, Nil)
    }
    children.zipAll(uses, e, 1).foldLeft((1.0, 1.0)) { case ((parts, written), (child, times)) =>
      val (p, w) = sizes(child)
      (parts + p, written + times * w)
    }
  }

  /** How often a function has each of its arguments. */
  private def usesOf(name: String, arguments: Int): Seq[Int] =
    if (arguments == 0 || arguments > MaxArguments) Nil
    else
      known.computeIfAbsent(
        (name.toLowerCase(java.util.Locale.ROOT), arguments),
        { case (function, _) =>
          val tried = types.flatMap { dataType =>
            val made = Seq.tabulate(arguments)(i => AttributeReference(s"a$i", dataType)())
            Try(FixedSemantics.built(function, made)).toOption
              .map(e => made.map(argument => count(e, argument)))
          }
          // One that cannot be built of made-up arguments may have them twice.
          if (tried.isEmpty) Seq.fill(arguments)(2) else tried.transpose.map(_.max)
        }
      )

  private def count(in: Expression, argument: Attribute): Int = in match {
    case a: Attribute          => if (a.exprId == argument.exprId) 1 else 0
    case r: RuntimeReplaceable =>
      val replaced = Try(count(r.replacement, argument)).getOrElse(0)
      math.max(replaced, r.children.map(count(_, argument)).sum)
    case other => other.children.map(count(_, argument)).sum
  }
}
