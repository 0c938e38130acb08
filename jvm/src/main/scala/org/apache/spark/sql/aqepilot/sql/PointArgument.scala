package org.apache.spark.sql.aqepilot.sql

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.reasons.Problem

/** The decision point that an argument of a SQL function names. */
private object PointArgument {

  /** @param others
    *   what the argument may be beside a point's name
    * @return
    *   the point; or what is wrong: there is none of that name, or this Spark cannot link it
    */
  def point(name: String, others: String*): Either[Problem, DecisionPoint[_]] =
    DecisionPoints.named(name).toRight(Health.problem(name).getOrElse {
      val known = (DecisionPoints.names ++ others).mkString(", ")
      Problem(
        Problem.PolicyPointUnknown,
        s"no decision point is named '$name'; there are: $known."
      )
    })
}
