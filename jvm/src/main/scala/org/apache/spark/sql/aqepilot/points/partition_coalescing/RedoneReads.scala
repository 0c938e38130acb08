package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, UsersRepartitions}
import org.apache.spark.sql.aqepilot.plans.shuffles.{CoalesceGroup, CoalesceGroups, UndoneReads}
import org.apache.spark.sql.aqepilot.spark.{ExplodingJoins, Sessions}
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  CoalesceShufflePartitions,
  OptimizeShuffleWithLocalRead,
  OptimizeSkewInRebalancePartitions
}
import org.apache.spark.sql.execution.exchange.ValidateRequirements
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** Runs Spark's own rules on a group once more, with a decision's values in place of the settings'.
  *
  * The values stand in a copy of the session's settings that only these runs see. As in AQE, a rule whose
  * result breaks a required distribution counts as not run.
  *
  * @param plan
  *   the stage's plan as Spark's rules left it
  * @param required
  *   distribution that the plan must keep
  */
final class RedoneReads(session: Sessions.Classic, plan: SparkPlan, required: Distribution) {

  private lazy val undone: SparkPlan =
    CoalesceGroups.replace(plan, CoalesceGroups.of(plan).flatMap(UndoneReads.of).toMap)

  /** How Spark's own rules alone read each shuffle. */
  private lazy val sparks: Map[Int, Any] = {
    val conf = session.sessionState.conf
    val rules = Seq[SparkPlan => SparkPlan](
      OptimizeSkewInRebalancePartitions(_),
      new CoalesceWithConf(session, conf)(_),
      OptimizeShuffleWithLocalRead(_)
    )
    val read = rules.foldLeft(undone) { (plan, rule) =>
      val result = SQLConf.withExistingConf(conf)(rule(plan))
      if (ValidateRequirements.validate(result, required)) result else plan
    }
    CoalesceGroups.readsOf(read).map { case (stage, read) => stage.id -> specs(read) }.toMap
  }

  /** Whether a group is read as Spark's own rules leave it. If not, a rule of another extension has changed it. */
  def isSparks(group: CoalesceGroup): Boolean = !OtherRules.optimizeStages(session) ||
    (CoalesceGroups.of(plan).forall(UndoneReads.canUndo) &&
      group.reads.forall { case (stage, read) => sparks.get(stage.id).contains(specs(read)) })

  private def specs(read: SparkPlan): Option[Seq[ShufflePartitionSpec]] = read match {
    case r: AQEShuffleReadExec =>
      // Spark's rules write a part's size there, or leave it out: it changes nothing.
      Some(r.partitionSpecs.map {
        case c: CoalescedPartitionSpec => c.copy(dataSize = None)
        case other                     => other
      })
    case _ => None
  }

  /** @return
    *   the node that reads each of the group's shuffles as decided, or why there is none
    */
  def redo(
      group: CoalesceGroup,
      decision: CoalescingDecision
  ): Either[String, Map[Int, SparkPlan]] = {
    val conf = overlay(group, decision)

    def applied(rule: String, plan: SparkPlan, isDecided: Boolean)(
        run: SparkPlan => SparkPlan
    ): Either[String, SparkPlan] = {
      val result = SQLConf.withExistingConf(conf)(run(plan))
      if ((result eq plan) || isValid(result)) Right(result)
      else if (isDecided) Left(s"$rule would break a distribution that the query needs")
      else Right(plan)
    }

    for {
      split <- applied("OptimizeSkewInRebalancePartitions", undone, decision.targetBytes.isDefined)(
        if (group.isRebalance) OptimizeSkewInRebalancePartitions(_) else identity
      )
      coalesced <- applied(
        "CoalesceShufflePartitions",
        split,
        decision.hasSizes || decision.keep.contains(false)
      )(coalesce(_, group, decision, conf))
      read <- applied(
        "OptimizeShuffleWithLocalRead",
        coalesced,
        decision.localRead.contains(true)
      )(OptimizeShuffleWithLocalRead(_))
    } yield readsOf(read, group)
  }

  def isValid(result: SparkPlan): Boolean =
    ValidateRequirements.validate(result, required) &&
      UsersRepartitions.areKeptInStage(plan, result)

  /** A minimum that is the group's own holds for it alone: Spark's is one for all groups of the stage, which
    * share it by size.
    */
  private def coalesce(
      plan: SparkPlan,
      group: CoalesceGroup,
      decision: CoalescingDecision,
      conf: SQLConf
  ): SparkPlan = {
    val scope =
      if (decision.minPartitions.isEmpty) plan
      else CoalesceGroups.of(plan).find(_.ids == group.ids).fold(plan)(_.root)
    val coalesced = new CoalesceWithConf(session, conf)(scope)
    CoalesceGroups.replace(plan, readsOf(coalesced, group))
  }

  private def readsOf(plan: SparkPlan, group: CoalesceGroup): Map[Int, SparkPlan] =
    CoalesceGroups.readsOf(plan).collect {
      case (stage, read) if group.ids.contains(stage.id) => stage.id -> read
    }.toMap

  private def overlay(group: CoalesceGroup, decision: CoalescingDecision): SQLConf = {
    // Not by SQLConf.clone and setConf, which log a warning for each deprecated setting.
    val conf = new SQLConf
    session.sessionState.conf.getAllConfs.foreach { case (k, v) => conf.settings.put(k, v) }
    def set[T](entry: ConfigEntry[T], value: Option[T]): Unit =
      value.foreach(v => conf.settings.put(entry.key, entry.stringConverter(v)))

    // Where rows may multiply, Spark takes the minimum size for the target; it does not see a join above the
    // group when its rule runs on the group alone.
    val isExploding = ExplodingJoins.takeMinimumSize && group.hasExplodingJoin
    val smallest = SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE
    set(smallest, decision.targetBytes.filter(_ => isExploding).orElse(decision.minPartitionBytes))
    val target =
      if (isExploding && !group.isRebalance) Some(conf.getConf(smallest)) else decision.targetBytes
    set(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES, target)

    decision.minPartitions.foreach { n =>
      conf.settings.put(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM.key, n.toString)
    }
    val coalesces = decision.keep.map(!_).orElse(if (decision.hasSizes) Some(true) else None)
    set(SQLConf.COALESCE_PARTITIONS_ENABLED, coalesces)
    set(SQLConf.LOCAL_SHUFFLE_READER_ENABLED, decision.localRead)
    conf
  }
}

/** Spark's rule, which from 4.0 on reads the session's settings wherever it runs. */
private class CoalesceWithConf(session: Sessions.Classic, settings: SQLConf)
    extends CoalesceShufflePartitions(session) {
  override def conf: SQLConf = settings
}
