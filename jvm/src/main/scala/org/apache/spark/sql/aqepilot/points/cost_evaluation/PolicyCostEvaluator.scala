package org.apache.spark.sql.aqepilot.points.cost_evaluation

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.plans.promises.{ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.{Memory, PointRule}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{Cost, CostEvaluator}

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
  private var comparison: Option[Comparison] = None
  private val memory = new Memory[(Asked[Double], Asked[Double])]
  private var overruled = 0
  private var isLeft = false

  override def evaluateCost(plan: SparkPlan): Cost = {
    val own = builtIn.evaluateCost(plan)
    if (isCurrent) {
      isCurrent = false
      comparison =
        at(Option.empty[Comparison])(_ => Some(new Comparison(SparkCost(plan, own))))
      comparison.fold(own)(_.costOfCurrent)
    } else {
      isCurrent = true
      val compared = comparison
      comparison = None
      compared.fold(own) { c =>
        c.order = at(Option.empty[Int]) { at =>
          order(at, new Replan(c.current, SparkCost(plan, own), at.conf))
        }
        new ComparedCost(c, own, isCurrent = false)
      }
    }
  }

  private def at[T](unchanged: T)(decide: PointRule[Double] => T): T =
    PointRule(CostEvaluationPoint, unchanged, evenUnasked = JoinState.anyForced)(decide)

  /** The re-plan's cost against the current plan's, as compare has it; None = as Spark's own costs are. */
  private def order(at: PointRule[Double], replan: Replan): Option[Int] = {
    val current = replan.current.plan
    val byForced = replan.orderByForced
    if (byForced != 0) Some(byForced).filter(replan.readsMore(_).isEmpty)
    else if (!at.isAsked || current == replan.candidate.plan) None
    else if (ReadTwice.isInQuery(replan.candidate.plan)) {
      if (!isLeft) ReadTwice.record(at, current.logicalLink.map(Tables.described))
      isLeft = true
      None
    } else decided(at, replan)
  }

  private def decided(at: PointRule[Double], replan: Replan): Option[Int] = {
    val known = memory.number
    val (current, candidate) = ask(at, replan)
    val keeps =
      Seq(replan.current, replan.candidate).flatMap(p => SparksTasks.of(at, p.plan).any).headOption
    val compared = for {
      _ <- keeps.map(SparksTasks.refusal).toLeft(())
      order <- compare(current.decision, candidate.decision, replan)
      _ <- replan.readsMore(order).map(why => (Reason.ReadsMore, Option(why))).toLeft(())
    } yield order
    if (memory.number > known) {
      record(at, replan, compared, "current", replan.current, current)
      record(at, replan, compared, "re-plan", replan.candidate, candidate)
    }
    compared.toOption
  }

  /** The answers on the current plan and on the re-plan. */
  private def ask(at: PointRule[Double], replan: Replan): (Asked[Double], Asked[Double]) = {
    val begun = System.nanoTime()
    def asked(plan: PlanToCost, begun: Long) =
      at.ask(begun = begun)(CostFacts.all.row(at.query, plan))
    memory.of(at.key((replan.currentToCost, replan.candidateToCost))) {
      (asked(replan.currentToCost, begun), asked(replan.candidateToCost, System.nanoTime()))
    }
  }

  private type Refused = (Reason, Option[String])

  /** The order that the answers give, or why Spark's own costs stay. */
  private def compare(
      current: Option[Double],
      candidate: Option[Double],
      replan: Replan
  ): Either[Refused, Int] =
    if (current.isEmpty && candidate.isEmpty) Left((Reason.NullAnswer, None))
    else {
      val costs =
        (current.orElse(replan.current.inShuffles), candidate.orElse(replan.candidate.inShuffles))
      costs match {
        case (Some(a), Some(b)) =>
          val order = if (b < a) -1 else if (b > a) 1 else 0
          if (order > 0 || replan.isAdoptedBySpark) Right(order)
          else if (overruled < PolicyCostEvaluator.MaxOverruled) {
            overruled += 1
            Right(order)
          } else Left((Reason.OverruledTooOften, None))
        case _ => Left((Reason.NotComparable, None))
      }
    }

  private def record(
      at: PointRule[Double],
      replan: Replan,
      compared: Either[Refused, Int],
      name: String,
      planned: SparkCost,
      asked: Asked[Double]
  ): Unit = {
    val number = memory.number
    val outcome = compared match {
      case Left(refused) => refused
      case Right(order)  => (Reason.Applied, Some(CostFates.detail(order <= 0)))
    }
    at.record(asked, outcome) {
      Subject(
        s"plan $id.$number, $name",
        s"cost-$id-$number-$name",
        tables = replan.current.plan.logicalLink.map(Tables.described),
        sparkAnswer = Some(planned.inShuffles.fold(planned.cost.toString)(_.toString)),
        sparkStrategy = Some(CostFates.plan(replan.isAdoptedBySpark)),
        chosen = _ => compared.toOption.map(o => CostFates.Chosen(o <= 0, replan.isAdoptedBySpark))
      )
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
