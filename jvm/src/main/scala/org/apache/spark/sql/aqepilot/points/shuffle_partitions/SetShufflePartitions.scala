package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.{PerQuery, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.{HashBuilds, PruningSides}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.plans.shuffles.{ShuffleGroup, ShuffleGroups, ShuffleShapes}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec

/** What asking about a group of shuffles gave. */
final private case class AskedShuffles(id: Long, asked: Asked[Any]) {
  def number: Option[Int] = asked.decision.map(_.asInstanceOf[Int])
}

/** The decision point `shuffle_partitions`: gives groups of new shuffles a policy's number of partitions.
  *
  * Hook: query stage preparation, at the first planning and at every re-plan, where shuffles that are not
  * started come back with Spark's number. Answers are remembered until a fact changes. A group of which a
  * shuffle is started keeps its number: Spark would shuffle anew what has fewer partitions than its default,
  * and that is taken back. Each changed plan is validated with the user's own distribution; an illegal group
  * keeps Spark's number and leaves the others theirs. A number that another extension's rule gave stays.
  *
  * A no-op without policies, and for shuffles that the user numbered.
  */
object SetShufflePartitions extends Rule[SparkPlan] {

  private val ids = new AtomicLong()

  /** On the shuffles of a group that a policy gave a number: the group's id. */
  val tag: TreeNodeTag[Long] = TreeNodeTag[Long]("aqepilot.shuffle")

  /** What is remembered of a query. */
  final private class Answers {
    val byKey = new ConcurrentHashMap[PointRule.Key, AskedShuffles]
    val shapes = new ShuffleShapes
  }

  private val remembered = new PerQuery(() => new Answers)

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(ShufflePartitionsPoint, plan)(decide(_, plan))

  private def decide(at: PointRule[Any], plan: SparkPlan): SparkPlan = {
    val answers = remembered(at.executionId)
    val groups = ShuffleGroups.of(plan, answers.shapes).filterNot(_.isFixed)
    if (groups.isEmpty) plan
    else if (ReadTwice.isInQuery(plan)) {
      if (!plan.exists(_.isInstanceOf[QueryStageExec]))
        ReadTwice.record(at, plan.logicalLink.map(Tables.described))
      plan
    } else {
      val (others, own) =
        groups.flatMap(change(at, _, answers)).partition(c => isOthers(at, c.group))
      lazy val parts = SparksTasks.of(at, plan)
      def keeps(c: Change) = c.group.shuffles.flatMap(parts.of).headOption
      val (kept, changes) = own.partition(keeps(_).nonEmpty)
      kept.foreach(c => keeps(c).foreach(why => c.record(SparksTasks.refusal(why))))
      val (legal, illegal) = NumberedShuffles.validated(plan, changes)
      def record(of: Seq[Change], reason: Reason, why: String) =
        of.foreach(_.record((reason, Some(why))))
      record(others, Reason.OtherExtension, OthersNumber)
      record(illegal, Reason.DistributionBroken, OtherDistribution)
      val changed = NumberedShuffles.changed(plan, legal)
      NumberedShuffles.fault(plan, changed, legal) match {
        case None =>
          legal.foreach(_.record(PointRule.Applied))
          changed
        case Some(why) =>
          FailOpen.fault(at.point.name, why)
          record(legal, Reason.InvalidRewrite, why)
          plan
      }
    }
  }

  private val OthersNumber = "the shuffles do not have the number that Spark gives to its own"
  private val OtherDistribution = "the plan needs another distribution than it would then have"

  /** Whether another extension's rule has given the group its numbers: Spark's own shuffles that are not started
    * have the session's.
    */
  private def isOthers(at: PointRule[Any], group: ShuffleGroup): Boolean =
    group.started.isEmpty && OtherRules.prepareStages(at.session) &&
      group.numbers.exists(_ != at.conf.numShufflePartitions)

  private def change(at: PointRule[Any], group: ShuffleGroup, answers: Answers): Option[Change] =
    group.started match {
      case Some(number) =>
        if (group.needless.isEmpty && group.numbers.forall(_ == number)) None
        else Some(Change(group, number, None, _ => ()))
      case None if group.shuffles.exists(PruningSides.isIn(_)) =>
        PruningSides.record(at, Some(ShuffleGroupFacts.tables(group)))
        None
      case None =>
        val (asked, record) = ask(at, group, answers)
        asked.number match {
          case Some(number) =>
            HashBuilds.tooLarge(group, number, at.guards, at.conf) match {
              case None      => Some(Change(group, number, Some(asked.id), record))
              case Some(why) =>
                record((Reason.GuardHashBuildBytes, Some(why)))
                None
            }
          case None =>
            record((Reason.NullAnswer, None))
            None
        }
    }

  /** The answers, and what writes them into the record if they are new. */
  private def ask(
      at: PointRule[Any],
      group: ShuffleGroup,
      answers: Answers
  ): (AskedShuffles, ((Reason, Option[String])) => Unit) = {
    val begun = System.nanoTime()
    val facts = ShuffleGroupFacts.of(group, at.conf)
    val key = at.key((facts, group.shapes))
    val known = answers.byKey.get(key)
    if (known != null) (known, _ => ())
    else {
      val row = at.ask(begun = begun)(facts.row(at.session.sparkContext, at.conf, at.executionId))
      val asked = AskedShuffles(ids.incrementAndGet(), row)
      answers.byKey.put(key, asked)
      (asked, outcome => at.record(row, outcome)(subject(asked.id, group)))
    }
  }

  private def subject(id: Long, group: ShuffleGroup) = Subject(
    s"shuffle $id",
    s"shuffle-$id",
    id = Some(ShuffleFates.ShuffleId(id)),
    tables = Some(ShuffleGroupFacts.tables(group)),
    sparkAnswer = Some(group.number.toString),
    sparkStrategy = Some(ShuffleFates.strategy(group.number))
  )
}
