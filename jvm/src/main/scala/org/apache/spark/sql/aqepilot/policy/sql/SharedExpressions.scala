package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}

/** Expressions that Catalyst makes once for a driver and hands to every query, as `Literal.TrueLiteral`.
  *
  * Each of them keeps the place in the text that was being read when it was made, for the rest of the driver's
  * life: the error of `LIMIT true` names that place. Were a policy's text the first to need one, errors of the
  * user's queries would point into it.
  */
private[policy] object SharedExpressions {

  /** The objects that hold them, in 3.5 to 4.3; a Spark need not have all. */
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

  /** What the user's own first `array_sort` makes has that query's place, which its error names. */
  private val ofFunction = "array_sort" -> "expressions.ArraySort"

  private lazy val made: Unit = holders.foreach(make)

  /** Makes those that reading a text needs, of no text, where they are not there yet. */
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
