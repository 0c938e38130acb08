package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, FateReader, Guards, Need, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._

/** In which order the relations of a chain of inner joins are joined.
  *
  * Stands beside Spark's `ReorderJoin`, before statistics order joins (`spark.sql.cbo.joinReorder.enabled`).
  */
object JoinReorderPoint extends DecisionPoint[OrderDecision] {

  override val name: String = "join_reorder"

  override val builtIn: String = "ReorderJoin"

  override val summary: String =
    "the order in which three or more relations are joined by inner joins"

  override val asked: String =
    "when a query is optimised, for each chain of inner and cross joins without hints: a score is asked for " +
      "each relation that could be joined next, a whole order once"

  override val facts: StructType = ChainFacts.all.schema

  /** The facts that differ from one step of an order to the next. */
  val ofStep: Seq[String] =
    Seq("candidate.conditions", "candidate.distinct_count", "candidate.joined_history", "joined")

  override val answer: DataType = DoubleType

  override val alternative: Option[DataType] = Some(ArrayType(IntegerType))

  override val answerMeaning: String =
    "a score for the candidate, the lowest joins next; or, as an array, the whole order, as positions in " +
      "Spark's own. Null for one candidate leaves the chain to Spark"

  override def parse(answer: Any): OrderDecision = answer match {
    case score: Double => Score(score)
    case positions     => order(positions.asInstanceOf[ArrayData])
  }

  private def order(positions: ArrayData): WholeOrder =
    WholeOrder((0 until positions.numElements()).map { i =>
      if (positions.isNullAt(i)) None else Some(positions.getInt(i))
    })

  override def toAnswer(decision: OrderDecision): Any = decision match {
    case Score(score)          => score
    case WholeOrder(positions) =>
      new GenericArrayData(positions.map(_.fold[Any](null)(n => n)).toArray[Any])
  }

  override def judge(
      decision: OrderDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[OrderDecision] = OrderLegality.verdict(decision, facts, guards)

  override def candidates(facts: FactsRow): Iterator[OrderDecision] =
    OrdersToTry.of(facts).map(order => WholeOrder(order.map(Some(_))))

  override def fates: FateReader = OrderFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.SparkSessionExtensions", Some("injectPreCBORule")),
    Need("org.apache.spark.sql.catalyst.plans.logical.JoinHint", Some("leftHint"))
  )
}
