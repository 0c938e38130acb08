package org.apache.spark.sql.aqepilot.policy.sql

import java.util.ArrayDeque

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.expressions.Expression

/** Keeps an expression small enough for any thread's stack and for the driver's time. */
private[policy] object ExpressionSize {
  val MaxDepth = 250
  val MaxParts = 50000

  /** @throws TextCheck.Refused */
  def check(expression: Expression): Unit = {
    val left = new ArrayDeque[(Expression, Int)]
    var parts = 0
    left.push((expression, 1))
    while (!left.isEmpty) {
      val (part, depth) = left.pop()
      parts += 1
      if (depth > MaxDepth || parts > MaxParts)
        TextCheck.refuse(
          PolicyError.TooComplex,
          s"The expression has more than $MaxDepth levels or $MaxParts parts: write it flatter, " +
            "say with CASE WHEN ... WHEN ..., IN (...) or parentheses around shorter chains.",
          part.origin
        )
      part.children.foreach(child => left.push((child, depth + 1)))
    }
  }
}
