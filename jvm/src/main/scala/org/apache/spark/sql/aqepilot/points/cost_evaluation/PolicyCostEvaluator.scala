package org.apache.spark.sql.aqepilot.points.cost_evaluation

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, SkewLayout}
import org.apache.spark.sql.aqepilot.plans.promises.{ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.{Memory, PointRule}
import org.apache.spark.sql.aqepilot.spark.SparkCosts
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{Cost, CostEvaluator}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** The decision point `cost_evaluation`: Spark's own cost, unless a policy gives another.
  *
  * AQE makes one for each adaptive plan and asks it twice at a re-plan, first about the plan it has and then
  * about the re-plan; it adopts the re-plan if that is cheaper, or different and as cheap. Both are asked about
  * when the second is there. A plan without an answer costs what Spark says, on the same scale
  * (`spark.cost`). Without policies and forced skew joins, Spark's own costs are handed back.
  */
final class PolicyCostEvaluator(running: SparkConf) extends CostEvaluator {

  private val builtIn = CostEvaluatorInstall.builtIn(running)
  private val id = PolicyCostEvaluator.ids.incrementAndGet()

  private var isCurrent = true
  private var begun: Option[Comparison] = None
  private val memory = new Memory[AskedPlans]
  private var overruled = 0
  private var isLeft = false

  override def evaluateCost(plan: SparkPlan): Cost = {
    val own = builtIn.evaluateCost(plan)
    if (isCurrent) {
      isCurrent = false
      begun = at(Option.empty[Comparison])(_ => Some(new Comparison(plan, own)))
      begun.fold(own)(_.costOfCurrent)
    } else {
      isCurrent = true
      val comparison = begun
      begun = None
      comparison.fold(own) { c =>
        c.order = at(Option.empty[Int])(order(_, c, plan, own))
        new ComparedCost(c, own, isCurrent = false)
      }
    }
  }

  private def at[T](unchanged: T)(decide: PointRule[Any] => T): T =
    PointRule(CostEvaluationPoint, unchanged, evenUnasked = JoinState.anyForced)(decide)

  /** The re-plan's cost against the current plan's, as compare has it; None = as Spark's own costs are. */
  private def order(at: PointRule[Any], c: Comparison, plan: SparkPlan, own: Cost): Option[Int] = {
    val byForced = Integer.compare(forcedSkewJoins(c.plan), forcedSkewJoins(plan))
    if (byForced != 0) {
      def facts(plan: SparkPlan, isCurrent: Boolean) = PlanFacts.of(plan, isCurrent)
      val more =
        readsMore(facts(c.plan, isCurrent = true), facts(plan, isCurrent = false), byForced, c, own)
      if (more.isEmpty) Some(byForced) else None
    } else if (!at.isAsked || c.plan == plan) None
    else if (ReadTwice.isInQuery(plan)) {
      if (!isLeft) ReadTwice.record(at, c.plan.logicalLink.map(Tables.described))
      isLeft = true
      None
    } else ask(at, c, plan, own)
  }

  private def isAdoptedBySpark(c: Comparison, own: Cost) = own < c.own || own == c.own

  /** What the plan that is decided on reads and Spark's choice does not, if something. */
  private def readsMore(
      current: PlanFacts,
      candidate: PlanFacts,
      order: Int,
      c: Comparison,
      own: Cost
  ): Option[String] = (order <= 0, isAdoptedBySpark(c, own)) match {
    case (true, false) => candidate.readsMoreThan(current)
    case (false, true) => current.readsMoreThan(candidate)
    case _             => None
  }

  private def forcedSkewJoins(plan: SparkPlan): Int =
    if (!JoinState.anyForced) 0
    else
      plan.collect {
        case j: BaseJoinExec
            if JoinState.of(j).exists(_.isForced) &&
              (SparkCosts.isSkewJoin(j) || SkewLayout.of(j).isSplit) => j
      }.size

  private def ask(at: PointRule[Any], c: Comparison, plan: SparkPlan, own: Cost): Option[Int] = {
    val begun = System.nanoTime()
    val current = PlanFacts.of(c.plan, isCurrent = true)
    val candidate = PlanFacts.of(plan, isCurrent = false)
    val (currentOwn, candidateOwn) = (SparkCosts.inShuffles(c.own), SparkCosts.inShuffles(own))
    def asked(of: PlanFacts, cost: Option[Double], begun: Long) = at.ask(begun = begun) {
      CostFacts
        .row(at.session.sparkContext, at.conf, at.executionId, of, current, cost, currentOwn)
    }
    val known = memory.number
    val answers = memory.of(at.key((current, candidate, currentOwn, candidateOwn))) {
      AskedPlans(
        asked(current, currentOwn, begun),
        asked(candidate, candidateOwn, System.nanoTime())
      )
    }
    val adopts = isAdoptedBySpark(c, own)
    val keeps = Seq(c.plan, plan).flatMap(SparksTasks.of(at, _).any).headOption
    val compared = keeps
      .map(SparksTasks.refusal)
      .toLeft(())
      .flatMap(_ => compare(answers, currentOwn, candidateOwn, adopts))
      .flatMap { order =>
        readsMore(current, candidate, order, c, own)
          .map(why => (Reason.ReadsMore, Option(why)))
          .toLeft(order)
      }
    val number = memory.number
    if (number > known) {
      def record(name: String, asked: Asked[Any], own: Cost): Unit =
        at.record(asked, outcome(compared)) {
          Subject(
            s"plan $id.$number, $name",
            s"cost-$id-$number-$name",
            tables = c.plan.logicalLink.map(Tables.described),
            sparkAnswer = Some(SparkCosts.inShuffles(own).fold(own.toString)(_.toString)),
            sparkStrategy = Some(CostFates.plan(adopts)),
            chosen = _ => compared.toOption.map(o => CostFates.Chosen(o <= 0, adopts))
          )
        }
      record("current", answers.current, c.own)
      record("re-plan", answers.candidate, own)
    }
    compared.toOption
  }

  private type Refused = (Reason, Option[String])

  private def outcome(compared: Either[Refused, Int]) = compared match {
    case Left(refused) => refused
    case Right(order)  => (Reason.Applied, Some(CostFates.detail(order <= 0)))
  }

  private def compare(
      asked: AskedPlans,
      currentOwn: Option[Double],
      candidateOwn: Option[Double],
      sparkAdopts: Boolean
  ): Either[Refused, Int] = {
    def decided(a: Asked[Any]) = a.decision.map(_.asInstanceOf[Double])
    val (current, candidate) = (decided(asked.current), decided(asked.candidate))
    if (current.isEmpty && candidate.isEmpty) Left((Reason.NullAnswer, None))
    else
      (current.orElse(currentOwn), candidate.orElse(candidateOwn)) match {
        case (Some(a), Some(b)) =>
          val order = if (b < a) -1 else if (b > a) 1 else 0
          if (order > 0 || sparkAdopts) Right(order)
          else if (overruled < PolicyCostEvaluator.MaxOverruled) {
            overruled += 1
            Right(order)
          } else Left((Reason.OverruledTooOften, None))
        case _ => Left((Reason.NotComparable, None))
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
