package org.apache.spark.sql.aqepilot.run

import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.policy.{OtherArms, PolicySet}
import org.apache.spark.sql.aqepilot.settings.{Arm, Mode}

/** The other arms of a unit, asked beside its own until an answer differs.
  *
  * @param others
  *   each with its policies, as far as they may go
  */
final class ComparedArms(val assigned: Assigned, own: Arm, others: Seq[(Arm, PolicySet)])
    extends OtherArms {

  /** A guard rail may have ended an arm since it was looked up. */
  private def inForce =
    if (assigned.isExposed || assigned.inForce != own) Nil
    else others.filter { case (arm, _) => assigned.experiment.stopped(arm).isEmpty }

  def isAsked(point: DecisionPoint[_]): Boolean =
    inForce.exists(_._2.at(point).exists(_.mode == Mode.Enforce))

  def compare[D](point: DecisionPoint[D], executionId: Option[Long], own: Option[D])(
      decide: PolicySet => Option[D]
  ): Unit = if (isAsked(point) || own.isDefined) {
    def text(decision: Option[D]) =
      decision.fold("Spark's own")(d => point.show(point.toAnswer(d)).take(MaxChars))
    lazy val ownText = text(own)
    val begun = System.nanoTime()
    try
      inForce.iterator
        .map { case (arm, set) => arm -> text(decide(set)) }
        .find { case (_, theirs) => theirs != ownText }
        .foreach { case (arm, theirs) =>
          assigned.expose(
            executionId,
            s"${point.name}: $ownText, with arm ${arm.name}: $theirs"
          )
        }
    finally assigned.askedBeside(System.nanoTime() - begun)
  }

  private val MaxChars = 200
}
