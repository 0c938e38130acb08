package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.{CommonFacts, Fact, Facts, HistoryFacts, PointFacts}
import org.apache.spark.sql.aqepilot.plans.joins.{FaultShapes, JoinShape}
import org.apache.spark.sql.catalyst.plans.Inner

/** The facts of `join_reorder`. */
private object ChainFacts {

  private val ofRelation = Fact.of[ChainRelation]

  private val relation: Seq[Fact[ChainRelation]] = Seq(
    ofRelation("position", "where Spark's own order has it; 0 = first")(_.position),
    CommonFacts.tables(ofRelation)(_.tables),
    ofRelation("size_in_bytes", "Spark's estimate of its size, bytes: see estimate_from")(
      _.statistics.sizeInBytes
    ),
    ofRelation("row_count", "rows; null when Spark does not know")(_.statistics.rowCount),
    ofRelation(
      "estimate_from",
      "where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"
    )(_.estimateFrom),
    ofRelation("filters", "conditions of the filters beneath, as SQL, in plan order")(_.filters),
    ofRelation("filter_count", "number of filters, null checks (IS NOT NULL) left out")(
      _.filters.count(!_.endsWith("IS NOT NULL)"))
    ),
    HistoryFacts.plan(ofRelation)(r => Some(r.plan))
  )

  private val relations = new Facts(relation: _*)

  private val ofChain = Fact.of[ChainToOrder]

  val chain: Facts[ChainToOrder] = new Facts(
    ofChain("num_relations", "relations in the chain")(_.relations.size),
    ofChain.structs("relations", "the relations, in Spark's own order", relations.schema)(
      _.relations.map(relations.row(_).copy())
    ),
    ofChain("conditions", "conditions of the joins, as SQL")(_.chain.conditions.map(_.sql)),
    ofChain.fixed(
      "signatures",
      "names the relations, in Spark's own order, on each run and on each Spark: 16 hex digits each, no two the same; " +
        "empty where one cannot be read"
    )(_.signatures),
    ofChain.structs(
      "condition_positions",
      "of each condition the positions of the relations that it is about",
      ConditionPositions.facts.schema
    )(_.chain.positions.map(c => ConditionPositions.facts.row(c.toSeq).copy())),
    ofChain("cross_products", "joins without a condition in Spark's own order")(
      _.chain.sparkCrossProducts
    ),
    CommonFacts.sparkFaults(ofChain, "the chain")(c =>
      FaultShapes.met(JoinShape(Inner, Nil, None, c.chain.relations))
    ),
    ofChain.structs(
      "pruned",
      "relations of which Spark may read only some partitions, by what a broadcast holds (dynamic partition " +
        "pruning)",
      PrunedRelation.facts.schema
    )(c => PrunedRelations.in(c.chain, c.conf).map(PrunedRelation.facts.row(_).copy()))
  )

  private val ofCandidate = Fact.of[Candidate]

  private val candidate = new Facts(
    relation.map(_.in[Candidate](_.relation)) ++ Seq(
      ofCandidate("conditions", "conditions that join it to what is joined so far, as SQL")(
        _.conditions.map(_.sql)
      ),
      ofCandidate(
        "distinct_count",
        "distinct values of its column in the first of those conditions; null when not known"
      )(_.distinctCount),
      HistoryFacts.join(
        ofCandidate,
        "joined_history",
        "what past runs measured of the join of it and what is joined so far, in any order; null where that was never " +
          "seen, for the first candidate, and without a history: see the facts named history"
      )(_.withJoined)
    ): _*
  )

  private val ofJoined = Fact.of[JoinedRelations]

  private val joined = new Facts(
    ofJoined("num_relations", "relations joined; 0 for the first candidate")(_.order.size),
    CommonFacts.tables(ofJoined)(_.tables),
    ofJoined("size_in_bytes", "Spark's estimate of their join")(_.statistics.map(_.sizeInBytes)),
    ofJoined("row_count", "Spark's estimate of its rows; null without column statistics")(
      _.statistics.flatMap(_.rowCount)
    ),
    HistoryFacts.join(ofJoined, "history", HistoryFacts.Meaning)(_.part)
  )

  private val ofStep = Fact.of[OrderStep]

  val all: PointFacts[OrderStep] = new PointFacts(
    ofStep.struct("chain", "all that is joined", chain.schema)(_.chain.row),
    ofStep.optionalGroup(
      "candidate",
      "the relation that a score is asked for; null facts where a whole order is asked for",
      candidate
    )(_.candidate),
    ofStep.optionalGroup(
      "joined",
      "what is joined so far; null facts when the candidate would be the first",
      joined
    )(_.joined)
  )
}
