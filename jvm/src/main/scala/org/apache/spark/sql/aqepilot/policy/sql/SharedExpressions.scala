package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}

/** Expressions that Catalyst makes once for a driver and hands to every query, as `Literal.TrueLiteral`.
  *
  * Each of them keeps the place in the text for which it was made, until the driver ends: the error of `LIMIT true`
  * names that place. If a policy's text were the first to need one, errors of the user's queries would point into it.
  */
private[policy] object SharedExpressions {

  /** The objects that hold them, in Spark 3.5 to 4.3; one release has not all of them. */
  private val holders = Seq(
    "analysis.CurrentNamespace",
    "analysis.UnresolvedSeed",
    "analysis.UnresolvedWithinGroup",
    "expressions.CurrentRow",
    "expressions.LambdaFunction",
    "expressions.Literal",
    "expressions.NamePlaceholder",
    "expressions.SizeBasedWindowFunction",
    "expressions.UnboundedFollowing",
    "expressions.UnboundedPreceding",
    "expressions.UnspecifiedFrame",
    "expressions.VirtualColumn",
    "expressions.aggregate.NoOp"
  )

  /** Made only if a text uses the function: the user's own first `array_sort` would make it with that query's place. */
  private val ofFunction = "array_sort" -> "expressions.ArraySort"

  private lazy val made: Unit = holders.foreach(make)

  /** Makes those that a text needs, with no place, unless they exist. */
  def makeFor(text: String): Unit = CurrentOrigin.withOrigin(Origin()) {
    made
    val (function, holder) = ofFunction
    if (text.toLowerCase(Locale.ROOT).contains(function)) make(holder)
  }

  private def make(holder: String): Unit =
    try {
      Class.forName(
        s"org.apache.spark.sql.catalyst.$holder$$",
        true,
        classOf[Origin].getClassLoader
      )
      ()
    } catch { case _: ClassNotFoundException | _: LinkageError => }
}
