package org.apache.spark.sql.aqepilot.run

import org.apache.spark.sql.aqepilot.policy.{ConfiguredPolicies, PolicySet}
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Arm}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Recent}
import org.apache.spark.sql.internal.SQLConf

/** The policies of a session, or of the arm that an experiment has drawn for it, as far as the control file lets them
  * go.
  */
object PoliciesInForce {

  private val MaxSets = 256

  private val besides = Recent.map[(AnyRef, Arm, PolicySet, Seq[PolicySet]), PolicySet](MaxSets)

  /** Costs a few look-ups when none is named. */
  def of(conf: SQLConf): PolicySet =
    FailOpen("experiment", Option.empty[Experiments.Place])(Experiments.place(conf)) match {
      case None        => limited(conf, conf.getConfString(AqePilotConf.Policies.key, ""))
      case Some(place) =>
        def of(arm: Arm) = limited(conf, arm.policies.mkString(","))
        val own = of(place.arm)
        place.assigned.filter(_.inForce == place.arm).fold(own) { unit =>
          val others = unit.experiment.others(unit).map(arm => arm -> of(arm))
          besides.computeIfAbsent(
            (unit, place.arm, own, others.map(_._2)),
            _ => own.beside(new ComparedArms(unit, place.arm, others))
          )
        }
    }

  private def limited(conf: SQLConf, listed: String): PolicySet = {
    val set = ConfiguredPolicies.of(conf, listed)
    if (set.policies.isEmpty) set else Control.limited(set, conf)
  }
}
