package org.apache.spark.sql.aqepilot.points.join_reorder

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.plans.promises.{PlanIntegrity, ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
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
      at: PointRule[OrderDecision],
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

  private def decided(
      at: PointRule[OrderDecision],
      chain: JoinChain,
      keeps: Option[Reason]
  ): LogicalPlan = {
    val asked = ask(at, new ChainToOrder(chain, at.conf))
    val id = ids.incrementAndGet()
    val plan = asked.decision match {
      case Some(order: WholeOrder) if !order.isSparks => ordered(chain, order.order, id)
      case _                                          => chain.top
    }
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

  private def ask(at: PointRule[OrderDecision], chain: ChainToOrder): Asked[OrderDecision] =
    at.ask(
      (policy, whole) =>
        if (policy.answer == DoubleType)
          new ScoredOrder(policy, at.query, chain).answer.map(_.map(point.toAnswer).orNull)
        else policy.eval(whole),
      Some(OrderLegality.verdict(chain.chain))
    )(ChainFacts.all.row(at.query, chain.whole))

  private def ordered(chain: JoinChain, order: Seq[Int], id: Long): LogicalPlan = {
    val plan =
      chain.joined(order, (join, position) => join.setTagValue(tag, Array(id, position.toLong)))
    if (plan.output == chain.top.output) plan else Project(chain.top.output, plan)
  }

  private val NoImplicitProduct =
    "a join of the query has no condition, which spark.sql.crossJoin.enabled=false forbids"

  private def subject(chain: JoinChain, id: Long): Subject[OrderDecision] = {
    val spark = chain.relations.indices.mkString("[", ",", "]")
    Subject(
      s"join order $id",
      s"order-$id",
      id = Some(OrderFates.ChainId(id)),
      tables = Some(Tables.joined(chain.relations: _*)),
      sparkAnswer = Some(spark),
      sparkStrategy = Some(spark),
      chosen = Some(_)
    )
  }
}
