package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.decision.{
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow, OldFacts}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

/** In which order the relations of a chain of inner joins are joined.
  *
  * Stands beside Spark's `ReorderJoin`, before statistics order joins (`spark.sql.cbo.joinReorder.enabled`).
  */
object JoinReorderPoint extends DecisionPoint[Any] {

  override val name: String = "join_reorder"

  override val builtIn: String = "ReorderJoin"

  override val summary: String =
    "the order in which three or more relations are joined by inner joins"

  override val asked: String =
    "when a query is optimised, for each chain of inner and cross joins without hints: a score is asked for " +
      "each relation that could be joined next, a whole order once"

  private val relation: Seq[StructField] = Seq(
    fact("position", IntegerType, "where Spark's own order has it; 0 = first"),
    OldFacts.tables,
    fact("size_in_bytes", LongType, "Spark's estimate of its size, bytes: see estimate_from"),
    fact("row_count", LongType, "rows; null when Spark does not know"),
    fact(
      "estimate_from",
      StringType,
      "where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"
    ),
    fact(
      "filters",
      ArrayType(StringType),
      "conditions of the filters beneath, as SQL, in plan order"
    ),
    fact("filter_count", IntegerType, "number of filters, null checks (IS NOT NULL) left out")
  )

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group(
        "chain",
        "all that is joined",
        fact("num_relations", IntegerType, "relations in the chain"),
        fact(
          "relations",
          ArrayType(StructType(relation)),
          "the relations, in Spark's own order"
        ),
        fact("conditions", ArrayType(StringType), "conditions of the joins, as SQL"),
        fact(
          "cross_products",
          IntegerType,
          "joins without a condition in Spark's own order"
        ),
        OldFacts.sparkFaults("the chain"),
        fact(
          "pruned",
          ArrayType(PrunedRelation.schema),
          "relations of which Spark may read only some partitions, by what a broadcast holds (dynamic partition " +
            "pruning)"
        )
      ),
      group(
        "candidate",
        "the relation that a score is asked for; null facts where a whole order is asked for",
        relation ++ Seq(
          fact(
            "conditions",
            ArrayType(StringType),
            "conditions that join it to what is joined so far, as SQL"
          ),
          fact(
            "distinct_count",
            LongType,
            "distinct values of its column in the first of those conditions; null when not known"
          )
        ): _*
      ),
      group(
        "joined",
        "what is joined so far; null facts when the candidate would be the first",
        fact("num_relations", IntegerType, "relations joined; 0 for the first candidate"),
        OldFacts.tables,
        fact("size_in_bytes", LongType, "Spark's estimate of their join"),
        fact("row_count", LongType, "Spark's estimate of its rows; null without column statistics")
      )
    )
  )

  /** The facts that differ from one step of an order to the next. */
  val ofStep: Seq[String] = Seq("candidate.conditions", "candidate.distinct_count", "joined")

  override val answer: DataType = DoubleType

  override val alternative: Option[DataType] = Some(ArrayType(IntegerType))

  override val answerMeaning: String =
    "a score for the candidate, the lowest joins next; or, as an array, the whole order, as positions in " +
      "Spark's own. Null for one candidate leaves the chain to Spark"

  def isScore(score: Double): Boolean = !score.isNaN && !score.isInfinity

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] = {
    val refusal = answer match {
      case order: ArrayData =>
        val pruned =
          facts.rows("chain.pruned", PrunedRelation.schema.length).map(PrunedRelation.of)
        OrderLegality
          .refusal(order, facts.long("chain.num_relations").getOrElse(0L).toInt)
          .orElse(ofFault(order, facts))
          .orElse(OrderLegality.readsMore(order, pruned))
      case score: Double if !isScore(score) =>
        Some((Reason.OutOfRange, s"a score of $score: it must be a finite number"))
      case _ => None
    }
    refusal.fold(Verdict(Some(answer), Reason.Applied)) { case (reason, detail) =>
      Verdict(None, reason, Some(detail))
    }
  }

  private def ofFault(order: ArrayData, facts: FactsRow): Option[(Reason, String)] =
    if (order.toIntArray().toSeq == (0 until order.numElements())) None
    else SparkFaults.refusal(name, "chain.spark_faults", Seq(SparkFault.Any), facts)

  override def fates: FateReader = OrderFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.SparkSessionExtensions", Some("injectPreCBORule")),
    Need("org.apache.spark.sql.catalyst.plans.logical.JoinHint", Some("leftHint"))
  )
}
