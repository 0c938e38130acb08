package org.apache.spark.sql.aqepilot.points.join_reorder

import java.util.concurrent.atomic.AtomicLong

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.sql.aqepilot.decision.{Asked, Asking, Health, PolicySet, QueryFacts}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{JoinChain, PlanIntegrity, ReadTwice, Tables}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types.DoubleType

import io.aqepilot.points.join_reorder.JoinReorderPoint
import io.aqepilot.policy.{CompiledPolicy, EvaluationFailure}
import io.aqepilot.terms.{FactsRow, Guards, Reason, Verdict}

/** The decision point `join_reorder`: joins the relations of a chain in the order that a policy says.
  *
  * Hook: after the optimiser's operator rules, before statistics and costs are looked at; once for a query, and
  * once for each subquery that Spark optimises by itself. The output's columns stay as they are and in their
  * order. A plan that the rule has been at is left alone when the rule comes to it again, as it does where Spark
  * applies a batch twice to see that its rules are idempotent (`spark.testing`): an ordered chain is one relation to
  * the joins around it, which may then make another chain with what they could not join before. Where
  * `spark.sql.cbo.joinReorder.enabled` would order the joins again, [[KeepOrder]] keeps it away. A chain in a part that
  * has to be planned alike for each of its readers stays as it is ([[ReadTwice]]).
  *
  * A no-op without policies.
  */
object ReorderJoins extends Rule[LogicalPlan] {

  private val point = JoinReorderPoint
  private val ids = new AtomicLong()

  /** On each join of a chain that a policy ordered: the chain's id, and the position of the relation that it
    * joins. Plans travel to executors, which do not have our classes.
    */
  val tag: TreeNodeTag[Array[Long]] = TreeNodeTag[Array[Long]]("aqepilot.order")

  /** On the root of a plan that this rule has been at. */
  private val done = TreeNodeTag[Unit]("aqepilot.ordered")

  override def apply(plan: LogicalPlan): LogicalPlan =
    DecisionRecord.failingOpen(point, plan) {
      lazy val set = PolicySet.of(conf)
      if (
        !Health.isLive(point) || !set.isAsked(point) ||
        !plan.containsPattern(TreePattern.INNER_LIKE_JOIN) || plan.getTagValue(done).nonEmpty
      ) plan
      else
        Sessions.active.fold(plan) { session =>
          FailOpen("parts read twice", ())(ReadTwice.markOptimised(plan))
          val ordered = reordered(session, set, plan)
          val now = if (ordered eq plan) plan else kept(ordered)
          now.setTagValue(done, ())
          now
        }
    }

  private def kept(ordered: LogicalPlan): LogicalPlan =
    if (conf.cboEnabled && conf.joinReorderEnabled) {
      val kept = KeepOrder(ordered)
      if (PlanIntegrity.differInHintsOnly(ordered, kept)) kept
      else {
        FailOpen.fault(point.name, "keeping the order changed more than hints")
        ordered
      }
    } else ordered

  private def reordered(session: Sessions.Classic, set: PolicySet, plan: LogicalPlan): LogicalPlan =
    read(session, plan) match {
      case Some(chain) if ReadTwice.isKeptInOrder(chain.top) =>
        ReadTwice.record(session, point, Some(Tables.described(plan)))
        plan
      case Some(chain) if !conf.crossJoinEnabled && chain.hasImplicitProduct =>
        DecisionRecord.undecided(
          session,
          point,
          Reason.CrossProduct,
          "a join of the query has no condition, which spark.sql.crossJoin.enabled=false forbids",
          Some(Tables.described(plan))
        )
        plan
      case Some(chain) =>
        val inner = chain.relations.map(reordered(session, set, _))
        val isChanged = inner.zip(chain.relations).exists { case (a, b) => a ne b }
        val now =
          if (isChanged)
            chain.copy(top = replaced(plan, chain.relations.zip(inner)), relations = inner)
          else chain
        decided(session, set, now)
      case None => plan.mapChildren(reordered(session, set, _))
    }

  private def read(session: Sessions.Classic, plan: LogicalPlan): Option[JoinChain] = {
    val (chain, ends) = ChainReader.read(plan)
    FailOpen("record", ()) {
      ends.foreach { end =>
        DecisionRecord.undecided(
          session,
          point,
          end.reason,
          end.detail,
          Some(Tables.described(plan))
        )
      }
    }
    chain
  }

  private def replaced(plan: LogicalPlan, by: Seq[(LogicalPlan, LogicalPlan)]): LogicalPlan =
    by.find(_._1 eq plan).fold(plan.mapChildren(replaced(_, by)))(_._2)

  private def decided(session: Sessions.Classic, set: PolicySet, chain: JoinChain): LogicalPlan = {
    val sc = session.sparkContext
    val conf = session.sessionState.conf
    val executionId = QueryFacts.executionId(sc)
    val facts = new ChainFacts(chain, sc, conf, executionId)
    val asked = Asking.of(
      session,
      set,
      point,
      executionId,
      (policy, whole) =>
        if (policy.answer == DoubleType) byScores(policy, chain, facts) else policy.eval(whole),
      Some(judge(chain))
    )(facts.whole)
    val id = ids.incrementAndGet()
    val order = asked.enforced.map { case (_, o) => o.asInstanceOf[ArrayData].toIntArray().toSeq }
    val plan = order.fold(chain.top)(ordered(chain, _, id))
    val fault = if (plan eq chain.top) None else PlanIntegrity.fault(chain, plan)
    fault.foreach(FailOpen.fault(point.name, _))
    record(session, chain, id, asked, executionId, fault)
    if (fault.isEmpty) plan else chain.top
  }

  private def ordered(
      chain: JoinChain,
      order: Seq[Int],
      id: Long
  ): LogicalPlan = if (order == chain.relations.indices) chain.top
  else {
    val plan =
      chain.joined(order, (join, position) => join.setTagValue(tag, Array(id, position.toLong)))
    if (plan.output == chain.top.output) plan else Project(chain.top.output, plan)
  }

  /** The order by a policy's scores: each time the connected relation with the lowest, the first of several;
    * where none is connected, of all. A score that is no number to compare by is the answer instead.
    */
  private def byScores(
      policy: CompiledPolicy,
      chain: JoinChain,
      facts: ChainFacts
  ): Either[EvaluationFailure, Any] = {
    // A score that depends on the relation alone is its score at every step.
    val isFixed = !JoinReorderPoint.ofStep.exists(policy.references)
    val known = mutable.HashMap.empty[Int, Either[EvaluationFailure, Any]]
    def score(c: Int, joined: Seq[Int], joinedRow: => InternalRow) = {
      def asked = policy.eval(facts.row(c, joined, joinedRow))
      if (isFixed) known.getOrElseUpdate(c, asked) else asked
    }
    @tailrec def ordered(joined: Seq[Int]): Either[EvaluationFailure, Any] = {
      val rest = chain.relations.indices.diff(joined)
      val connected = chain.connected(joined, rest)
      val candidates = if (joined.isEmpty || connected.isEmpty) rest else connected
      if (rest.isEmpty) Right(new GenericArrayData(joined.toArray[Any]))
      else if (candidates.size == 1 && joined.nonEmpty) ordered(joined :+ candidates.head)
      else {
        lazy val joinedRow = facts.joined(joined)
        val scores = candidates.iterator.map(c => (c, score(c, joined, joinedRow)))
        var best: (Int, Double) = null
        var otherwise: Option[Either[EvaluationFailure, Any]] = None
        while (otherwise.isEmpty && scores.hasNext)
          scores.next() match {
            case (c, Right(score: Double)) if JoinReorderPoint.isScore(score) =>
              if (best == null || score < best._2) best = (c, score)
            case (_, none) => otherwise = Some(none)
          }
        otherwise match {
          case Some(none) => none
          case None       => ordered(joined :+ best._1)
        }
      }
    }
    ordered(Nil)
  }

  private def judge(chain: JoinChain)(answer: Any, facts: FactsRow, guards: Guards): Verdict =
    point.judge(answer, facts, guards) match {
      case Verdict(Some(order: ArrayData), _, _) =>
        val further = chain.crossProducts(order.toIntArray().toSeq) - chain.sparkCrossProducts
        if (further <= guards.maxCrossProducts) Verdict(Some(order), Reason.Applied)
        else
          Verdict(
            None,
            Reason.CrossProduct,
            Some(
              s"$further joins without a condition more than in Spark's own order; " +
                s"spark.aqepilot.guard.max_cross_products allows ${guards.maxCrossProducts}"
            )
          )
      case refused => refused
    }

  private def record(
      session: Sessions.Classic,
      chain: JoinChain,
      id: Long,
      asked: Asked,
      executionId: Option[Long],
      fault: Option[String]
  ): Unit = FailOpen("record", ()) {
    def subject = {
      val spark = chain.relations.indices.mkString("[", ",", "]")
      Subject(
        s"join order $id",
        s"order-$id",
        id = Some(OrderFates.ChainId(id)),
        tables = Some(chain.relations.map(Tables.described).mkString(" ⋈ ")),
        sparkAnswer = Some(spark),
        sparkStrategy = Some(spark),
        chosen = order => Some(order.asInstanceOf[ArrayData].toIntArray().toSeq)
      )
    }
    val outcome = if (fault.isEmpty) Reason.Applied else Reason.InvalidRewrite
    DecisionRecord.write(session, point, executionId, subject, asked, (outcome, fault))
  }
}
