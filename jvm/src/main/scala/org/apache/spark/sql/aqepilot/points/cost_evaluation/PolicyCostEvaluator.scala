package org.apache.spark.sql.aqepilot.points.cost_evaluation

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.decision.{Asked, Asking, PolicySet, QueryFacts}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions, SparkCosts}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{JoinState, ReadTwice, SkewLayout, Tables}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{Cost, CostEvaluator}
import org.apache.spark.sql.execution.joins.BaseJoinExec

import io.aqepilot.points.cost_evaluation.CostEvaluationPoint
import io.aqepilot.terms.Reason

/** The decision point `cost_evaluation`: Spark's own cost, unless a policy gives another.
  *
  * AQE makes one for each adaptive plan and asks it twice at a re-plan, first about the plan it has and then
  * about the re-plan; it adopts the re-plan if that is cheaper, or different and as cheap. Both are asked about
  * when the second is there. A plan without an answer costs what Spark says, on the same scale
  * (`spark.cost`). Without policies and forced skew joins, Spark's own costs are handed back.
  */
final class PolicyCostEvaluator(running: SparkConf) extends CostEvaluator {

  private val point = CostEvaluationPoint
  private val builtIn = CostEvaluatorInstall.builtIn(running)
  private val id = PolicyCostEvaluator.ids.incrementAndGet()

  private var isCurrent = true
  private var begun: Option[Comparison] = None
  private var memory: Option[AskedPlans] = None
  private var askings = 0
  private var overruled = 0
  private var isLeft = false

  override def evaluateCost(plan: SparkPlan): Cost = {
    val own = builtIn.evaluateCost(plan)
    if (isCurrent) {
      isCurrent = false
      begun = DecisionRecord.failingOpen(point, Option.empty[Comparison]) {
        if (isWanted) Some(new Comparison(plan, own)) else None
      }
      begun.fold(own)(_.costOfCurrent)
    } else {
      isCurrent = true
      val comparison = begun
      begun = None
      comparison.fold(own) { c =>
        c.order = DecisionRecord.failingOpen(point, Option.empty[Int])(order(c, plan, own))
        new ComparedCost(c, own, isCurrent = false)
      }
    }
  }

  private def isWanted: Boolean = JoinState.anyForced ||
    Sessions.active.exists(s => PolicySet.of(s.sessionState.conf).isAsked(point))

  /** The re-plan's cost against the current plan's, as compare has it; None = as Spark's own costs are. */
  private def order(c: Comparison, plan: SparkPlan, own: Cost): Option[Int] = {
    val byForced = Integer.compare(forcedSkewJoins(c.plan), forcedSkewJoins(plan))
    if (byForced != 0) Some(byForced)
    else
      Sessions.active.flatMap { session =>
        val set = PolicySet.of(session.sessionState.conf)
        if (!set.isAsked(point) || c.plan == plan) None
        else if (ReadTwice.isInQuery(plan)) {
          if (!isLeft) ReadTwice.record(session, point, c.plan.logicalLink.map(Tables.described))
          isLeft = true
          None
        } else ask(session, set, c, plan, own)
      }
  }

  private def forcedSkewJoins(plan: SparkPlan): Int =
    if (!JoinState.anyForced) 0
    else
      plan.collect {
        case j: BaseJoinExec
            if JoinState.of(j).exists(_.isForced) &&
              (SparkCosts.isSkewJoin(j) || SkewLayout.of(j).isSplit) => j
      }.size

  private def ask(
      session: Sessions.Classic,
      set: PolicySet,
      c: Comparison,
      plan: SparkPlan,
      own: Cost
  ): Option[Int] = {
    val sc = session.sparkContext
    val conf = session.sessionState.conf
    val executionId = QueryFacts.executionId(sc)
    val begun = System.nanoTime()
    val current = PlanFacts.of(c.plan, isCurrent = true)
    val candidate = PlanFacts.of(plan, isCurrent = false)
    val (currentOwn, candidateOwn) = (SparkCosts.inShuffles(c.own), SparkCosts.inShuffles(own))
    val key = (set, QueryFacts.conf(conf), current, candidate, currentOwn, candidateOwn)
    val isNew = !memory.exists(_.key == key)
    if (isNew) {
      askings += 1
      def asked(of: PlanFacts, cost: Option[Double], begun: Long) =
        Asking.of(session, set, point, executionId, begun = begun) {
          CostFacts.row(sc, conf, executionId, of, current, cost, currentOwn)
        }
      memory = Some(
        AskedPlans(
          key,
          asked(current, currentOwn, begun),
          asked(candidate, candidateOwn, System.nanoTime())
        )
      )
    }
    val answers = memory.get
    val compared = compare(answers, currentOwn, candidateOwn, sparkAdopts(c, own))
    if (isNew)
      FailOpen("record", ()) {
        val tables = c.plan.logicalLink.map(Tables.described)
        def record(name: String, asked: Asked, own: Cost): Unit = {
          val subject = Subject(
            s"plan $id.$askings, $name",
            s"cost-$id-$askings-$name",
            tables = tables,
            sparkAnswer = Some(SparkCosts.inShuffles(own).fold(own.toString)(_.toString)),
            sparkStrategy = Some(CostFates.plan(sparkAdopts(c, own))),
            chosen = _ => compared.toOption.map(o => CostFates.Chosen(o <= 0, sparkAdopts(c, own)))
          )
          DecisionRecord.write(session, point, executionId, subject, asked, outcome(compared))
        }
        record("current", answers.current, c.own)
        record("re-plan", answers.candidate, own)
      }
    compared.toOption
  }

  private def outcome(compared: Either[Reason, Int]) = compared match {
    case Left(reason) => (reason, None)
    case Right(order) => (Reason.Applied, Some(CostFates.detail(order <= 0)))
  }

  private def sparkAdopts(c: Comparison, own: Cost) = own < c.own || own == c.own

  private def compare(
      asked: AskedPlans,
      currentOwn: Option[Double],
      candidateOwn: Option[Double],
      sparkAdopts: => Boolean
  ): Either[Reason, Int] = {
    def decided(a: Asked) = a.enforced.map(_._2.asInstanceOf[Double])
    val (current, candidate) = (decided(asked.current), decided(asked.candidate))
    if (current.isEmpty && candidate.isEmpty) Left(Reason.NullAnswer)
    else
      (current.orElse(currentOwn), candidate.orElse(candidateOwn)) match {
        case (Some(a), Some(b)) =>
          val order = if (b < a) -1 else if (b > a) 1 else 0
          if (order > 0 || sparkAdopts) Right(order)
          else if (overruled < PolicyCostEvaluator.MaxOverruled) {
            overruled += 1
            Right(order)
          } else Left(Reason.OverruledTooOften)
        case _ => Left(Reason.NotComparable)
      }
  }
}

object PolicyCostEvaluator {

  private val ids = new AtomicLong()

  /** How many re-plans that Spark finds dearer an adaptive plan may adopt: each may add shuffles, whose end
    * leads to the next re-plan, so that without a limit a query might never end.
    */
  val MaxOverruled = 64
}

/** The answers on two plans, and what they were given for. */
final private case class AskedPlans(key: Any, current: Asked, candidate: Asked)

/** The two costs of one re-plan.
  *
  * @param plan
  *   the current one
  * @param own
  *   Spark's cost of it
  */
final private class Comparison(val plan: SparkPlan, val own: Cost) {

  /** The re-plan's cost against the current plan's; None = as Spark's own costs are. */
  var order: Option[Int] = None

  val costOfCurrent = new ComparedCost(this, own, isCurrent = true)
}

/** One plan's cost. Only means something beside the other one of its comparison. */
final private class ComparedCost(
    private val of: Comparison,
    private val own: Cost,
    private val isCurrent: Boolean
) extends Cost {

  private def decided(that: ComparedCost): Option[Int] =
    if ((that.of ne of) || that.isCurrent == isCurrent) None
    else of.order.map(o => if (isCurrent) -o else o)

  override def compare(that: Cost): Int = that match {
    case c: ComparedCost => decided(c).getOrElse(own.compare(c.own))
    case _               => own.compare(that)
  }

  override def equals(that: Any): Boolean = that match {
    case c: ComparedCost => decided(c).fold(own == c.own)(_ == 0)
    case _               => own == that
  }

  override def hashCode(): Int = 0

  override def toString: String = own.toString
}
