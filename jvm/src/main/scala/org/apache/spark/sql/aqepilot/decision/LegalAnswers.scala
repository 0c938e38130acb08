package org.apache.spark.sql.aqepilot.decision

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow

/** The answers that a policy could give and have carried out, by the point's own legality. */
object LegalAnswers {

  /** How many candidates are judged: of a long chain most orders may be refused. */
  private val MaxJudged = 10000

  /** @param most
    *   how many there are at most
    * @return
    *   as the record has answers, each decision once; none where every answer would be refused, as where the query's
    *   author gave a hint. What only the running plan tells may still refuse one.
    */
  def of[D](point: DecisionPoint[D], facts: InternalRow, guards: Guards, most: Int): Seq[String] = {
    val row = new FactsRow(point.facts, facts)
    val known = mutable.HashSet.empty[String]
    point
      .candidates(row)
      .take(MaxJudged)
      .flatMap(point.judge(_, row, guards).decision.iterator)
      .map(decision => point.show(point.toAnswer(decision)))
      .filter(known.add)
      .take(most)
      .toVector
  }
}
