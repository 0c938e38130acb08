package org.apache.spark.sql.aqepilot.points.join_reorder

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.{FactsRow, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.plans.promises.{PlanIntegrity, ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.DoubleType

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

  override def apply(plan: LogicalPlan): LogicalPlan = {
    def concerns =
      plan.containsPattern(TreePattern.INNER_LIKE_JOIN) && plan.getTagValue(done).isEmpty
    PointRule(point, plan, concerns) { at =>
      FailOpen("parts read twice", ())(ReadTwice.markOptimised(plan))
      val ordered = reordered(at, plan, SparksTasks.of(at, plan))
      val now = if (ordered eq plan) plan else KeepOrder(ordered, conf)
      now.setTagValue(done, ())
      now
    }
  }

  private def reordered(
      at: PointRule[Any],
      plan: LogicalPlan,
      parts: SparksTasks.Parts[LogicalPlan]
  ): LogicalPlan = {
    def tables = Some(Tables.described(plan))
    val (read, ends) = ChainReader.read(plan)
    ends.foreach(end => at.undecided(end.reason, end.detail, tables))
    read match {
      case Some(chain) if ReadTwice.isKeptInOrder(chain.top) =>
        ReadTwice.record(at, tables)
        plan
      case Some(chain) if !at.conf.crossJoinEnabled && chain.hasImplicitProduct =>
        at.undecided(Reason.CrossProduct, NoImplicitProduct, tables)
        plan
      case Some(chain) =>
        val inner = chain.relations.map(reordered(at, _, parts))
        val isChanged = inner.zip(chain.relations).exists { case (a, b) => a ne b }
        val now =
          if (isChanged)
            chain.copy(top = replaced(plan, chain.relations.zip(inner)), relations = inner)
          else chain
        def overBarrier = if (SparksTasks.hasBarrier(plan)) Some(Reason.BarrierStage) else None
        decided(at, now, parts.of(plan).orElse(overBarrier))
      case None => plan.mapChildren(reordered(at, _, parts))
    }
  }

  private def replaced(plan: LogicalPlan, by: Seq[(LogicalPlan, LogicalPlan)]): LogicalPlan =
    by.find(_._1 eq plan).fold(plan.mapChildren(replaced(_, by)))(_._2)

  private def decided(at: PointRule[Any], chain: JoinChain, keeps: Option[Reason]): LogicalPlan = {
    val facts = new ChainFacts(chain, at.session.sparkContext, at.conf, at.executionId)
    val asked = at.ask(
      (policy, whole) =>
        if (policy.answer == DoubleType) ScoredOrder.of(policy, chain, facts)
        else policy.eval(whole),
      Some(judge(chain))
    )(facts.whole)
    val id = ids.incrementAndGet()
    val order = asked.decision.map(o => o.asInstanceOf[ArrayData].toIntArray().toSeq)
    val plan = order.fold(chain.top)(ordered(chain, _, id))
    val fault = if (plan eq chain.top) None else PlanIntegrity.fault(chain, plan)
    keeps match {
      case Some(why) if plan ne chain.top =>
        at.record(asked, SparksTasks.refusal(why))(subject(chain, id))
        chain.top
      case _ =>
        at.recordRewrite(asked, fault)(subject(chain, id))
        if (fault.isEmpty) plan else chain.top
    }
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

  private def judge(chain: JoinChain)(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] =
    point.judge(answer, facts, guards) match {
      case Verdict(Some(order: ArrayData), _, _) =>
        val further = chain.crossProducts(order.toIntArray().toSeq) - chain.sparkCrossProducts
        if (further <= guards.maxCrossProducts)
          RuntimeFilters
            .lost(chain, order.toIntArray().toSeq)
            .fold(Verdict(Some(order), Reason.Applied))(what =>
              Verdict(None, Reason.ReadsMore, Some(what))
            )
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

  private val NoImplicitProduct =
    "a join of the query has no condition, which spark.sql.crossJoin.enabled=false forbids"

  private def subject(chain: JoinChain, id: Long): Subject[Any] = {
    val spark = chain.relations.indices.mkString("[", ",", "]")
    Subject(
      s"join order $id",
      s"order-$id",
      id = Some(OrderFates.ChainId(id)),
      tables = Some(Tables.joined(chain.relations: _*)),
      sparkAnswer = Some(spark),
      sparkStrategy = Some(spark),
      chosen = order => Some(order.asInstanceOf[ArrayData].toIntArray().toSeq)
    )
  }
}
