package org.apache.spark.sql.aqepilot.points.join_reorder

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.sql.aqepilot.facts.Query
import org.apache.spark.sql.aqepilot.policy.{CompiledPolicy, EvaluationFailure}

/** The order of a policy that scores relations: each time the connected relation with the lowest score joins next, the
  * first of several; where none is connected, that of all.
  */
final private class ScoredOrder(policy: CompiledPolicy, query: Query, chain: ChainToOrder) {
  import ScoredOrder._

  /** Whether a score depends on the relation alone, and so is the same at every step. */
  private val isFixed = !JoinReorderPoint.ofStep.exists(policy.references)

  private val known = mutable.HashMap.empty[Int, Answered]

  /** The whole order; or the first score that is null, failed or no number to compare by. */
  def answer: Answered = ordered(Nil)

  @tailrec private def ordered(joined: Seq[Int]): Answered = {
    val rest = chain.chain.relations.indices.diff(joined)
    val connected = chain.chain.connected(joined, rest)
    val candidates = if (joined.isEmpty || connected.isEmpty) rest else connected
    if (rest.isEmpty) Right(Some(WholeOrder(joined.map(Some(_)))))
    else if (candidates.size == 1 && joined.nonEmpty) ordered(joined :+ candidates.head)
    else
      lowest(candidates, chain.joined(joined)) match {
        case Right((next, _)) => ordered(joined :+ next)
        case Left(ended)      => ended
      }
  }

  /** The candidate with the lowest score, and that. */
  private def lowest(
      candidates: Seq[Int],
      joined: JoinedRelations
  ): Either[Answered, (Int, Double)] =
    candidates.foldLeft[Either[Answered, (Int, Double)]](Right((-1, Double.PositiveInfinity))) {
      case (Right((best, least)), next) =>
        score(next, joined) match {
          case Right(Some(score: Score)) if score.isNumber =>
            Right(if (score.value < least) (next, score.value) else (best, least))
          case other => Left(other)
        }
      case (ended, _) => ended
    }

  private def score(next: Int, joined: JoinedRelations): Answered = {
    def asked = policy
      .eval(ChainFacts.all.row(query, chain.step(joined, next)))
      .map(Option(_).map(JoinReorderPoint.parse))
    if (isFixed) known.getOrElseUpdate(next, asked) else asked
  }
}

private object ScoredOrder {

  /** What a policy answered; None = null. */
  type Answered = Either[EvaluationFailure, Option[OrderDecision]]
}
