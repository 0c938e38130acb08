package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import java.util.{Collections, IdentityHashMap, WeakHashMap}
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.decision.{
  Asked,
  Asking,
  Guardrails,
  Health,
  PolicySet,
  QueryFacts
}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{
  HashBuilds,
  OtherRules,
  ReadTwice,
  RequiredDistribution,
  ShuffleGroup,
  ShuffleGroups,
  ShuffleShapes,
  Tables,
  UsersRepartitions
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

import io.aqepilot.points.shuffle_partitions.ShufflePartitionsPoint
import io.aqepilot.terms.Reason

/** What asking about a group of shuffles gave. */
final private case class AskedShuffles(id: Long, asked: Asked) {
  def number: Option[Int] = asked.enforced.map(_._2.asInstanceOf[Int])
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

  private val point = ShufflePartitionsPoint
  private val ids = new AtomicLong()

  /** On the shuffles of a group that a policy gave a number: the group's id. */
  val tag: TreeNodeTag[Long] = TreeNodeTag[Long]("aqepilot.shuffle")

  /** What is remembered of a query. */
  final private class Answers {
    val byKey = new ConcurrentHashMap[Any, AskedShuffles]
    val shapes = new ShuffleShapes
  }

  /** The answers of each query, gone with it. */
  private val answersOf =
    Collections.synchronizedMap(new WeakHashMap[QueryExecution, Answers]())

  /** None outside an execution (`df.rdd`, `explain`). */
  private def remembered(executionId: Option[Long]): Option[Answers] =
    QueryFacts.execution(executionId).map(answersOf.computeIfAbsent(_, _ => new Answers))

  /** What becomes of a group: the number it gets, and how to tell. */
  private case class Change(
      group: ShuffleGroup,
      number: Int,
      asked: Option[AskedShuffles],
      record: ((Reason, Option[String])) => Unit
  )

  override def apply(plan: SparkPlan): SparkPlan =
    DecisionRecord.failingOpen(point, plan) {
      lazy val set = PolicySet.of(conf)
      if (!Health.isLive(point) || !set.isAsked(point)) plan
      else Sessions.active.fold(plan)(decide(_, set, plan))
    }

  private def decide(session: Sessions.Classic, set: PolicySet, plan: SparkPlan): SparkPlan = {
    val answers = remembered(QueryFacts.executionId(session.sparkContext)).getOrElse(new Answers)
    val groups = ShuffleGroups.of(plan, answers.shapes).filterNot(_.isFixed)
    if (groups.isEmpty) plan
    else if (ReadTwice.isInQuery(plan)) {
      if (!plan.exists(_.isInstanceOf[QueryStageExec]))
        ReadTwice.record(session, point, plan.logicalLink.map(Tables.described))
      plan
    } else {
      val (others, changes) =
        groups.flatMap(change(session, set, _, answers)).partition(c => isOthers(session, c.group))
      others.foreach(
        _.record(
          (
            Reason.OtherExtension,
            Some("the shuffles do not have the number that Spark gives to its own")
          )
        )
      )
      val (legal, illegal) = validated(plan, changes)
      legal.foreach(_.record((Reason.Applied, None)))
      illegal.foreach(
        _.record(
          (
            Reason.DistributionBroken,
            Some("the plan needs another distribution than it would then have")
          )
        )
      )
      changed(plan, legal)
    }
  }

  /** Whether another extension's rule has given the group its numbers: Spark's own shuffles that are not started
    * have the session's.
    */
  private def isOthers(session: Sessions.Classic, group: ShuffleGroup): Boolean =
    group.started.isEmpty && OtherRules.prepareStages(session) &&
      group.numbers.exists(_ != session.sessionState.conf.numShufflePartitions)

  private def change(
      session: Sessions.Classic,
      set: PolicySet,
      group: ShuffleGroup,
      answers: Answers
  ): Option[Change] = group.started match {
    case Some(number) =>
      if (group.needless.isEmpty && group.numbers.forall(_ == number)) None
      else Some(Change(group, number, None, _ => ()))
    case None =>
      val asked = ask(session, set, group, answers)
      asked._1.number match {
        case Some(number) =>
          val guards = Guardrails.of(conf, session.sparkContext)
          HashBuilds.tooLarge(group, number, guards, conf) match {
            case None      => Some(Change(group, number, Some(asked._1), asked._2))
            case Some(why) =>
              asked._2((Reason.GuardHashBuildBytes, Some(why)))
              None
          }
        case None =>
          asked._2((Reason.NullAnswer, None))
          None
      }
  }

  /** The answers, and what writes them into the record if they are new. */
  private def ask(
      session: Sessions.Classic,
      set: PolicySet,
      group: ShuffleGroup,
      answers: Answers
  ) = {
    val sc = session.sparkContext
    val executionId = QueryFacts.executionId(sc)
    val begun = System.nanoTime()
    val facts = ShuffleGroupFacts.of(group, conf)
    val key = (set, QueryFacts.conf(conf), facts, group.shapes)
    val known = answers.byKey.get(key)
    if (known != null) (known, (_: (Reason, Option[String])) => ())
    else {
      val asked = AskedShuffles(
        ids.incrementAndGet(),
        Asking.of(session, set, point, executionId, begun = begun)(
          facts.row(sc, conf, executionId)
        )
      )
      answers.byKey.put(key, asked)
      def record(outcome: (Reason, Option[String])): Unit = FailOpen("record", ()) {
        val subject = Subject(
          s"shuffle ${asked.id}",
          s"shuffle-${asked.id}",
          id = Some(ShuffleFates.ShuffleId(asked.id)),
          tables = Some(ShuffleGroupFacts.tables(group)),
          sparkAnswer = Some(group.number.toString),
          sparkStrategy = Some(ShuffleFates.strategy(group.number))
        )
        DecisionRecord.write(session, point, executionId, subject, asked.asked, outcome)
      }
      (asked, (o: (Reason, Option[String])) => record(o))
    }
  }

  private def validated(plan: SparkPlan, changes: Seq[Change]): (Seq[Change], Seq[Change]) =
    if (changes.isEmpty || isUnchangedOrLegal(plan, changed(plan, changes))) (changes, Nil)
    else
      changes.foldLeft((Seq.empty[Change], Seq.empty[Change])) { case ((legal, illegal), c) =>
        if (isLegal(plan, changed(plan, legal :+ c))) (legal :+ c, illegal)
        else (legal, illegal :+ c)
      }

  private def isUnchangedOrLegal(before: SparkPlan, plan: SparkPlan): Boolean =
    (plan eq before) || isLegal(before, plan)

  private def isLegal(before: SparkPlan, plan: SparkPlan): Boolean =
    RequiredDistribution.isKept(before, plan) &&
      UsersRepartitions.needless(before, plan).isEmpty

  private def changed(plan: SparkPlan, changes: Seq[Change]): SparkPlan = {
    val numbers = new IdentityHashMap[SparkPlan, Change]()
    val needless = new IdentityHashMap[SparkPlan, Change]()
    changes.foreach { c =>
      c.group.shuffles.foreach(numbers.put(_, c))
      c.group.needless.foreach(needless.put(_, c))
    }
    if (numbers.isEmpty) plan
    else
      plan.transformDown {
        case e: ShuffleExchangeExec if numbers.containsKey(e) =>
          val c = numbers.get(e)
          val numbered = ShuffleGroups.withNumber(e, c.number)
          c.asked.foreach(a => numbered.setTagValue(tag, a.id))
          numbered
        case e: ShuffleExchangeExec if needless.containsKey(e) => e.child
      }
  }
}
