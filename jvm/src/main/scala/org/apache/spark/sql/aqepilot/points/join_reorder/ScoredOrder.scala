package org.apache.spark.sql.aqepilot.points.join_reorder

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.policy.{CompiledPolicy, EvaluationFailure}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData

/** The order of a policy that scores relations: the lowest score joins next. */
private object ScoredOrder {

  /** The order by a policy's scores: each time the connected relation with the lowest, the first of several;
    * where none is connected, of all. A score that is no number to compare by is the answer instead.
    */
  def of(
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
}
