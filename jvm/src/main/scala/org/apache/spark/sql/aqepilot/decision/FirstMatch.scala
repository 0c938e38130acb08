package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.FactsRow

/** Joins that ask of a row whether there is a match, and look no further once there is one.
  *
  * Which pairs such a join evaluates its condition on depends on the order of the rows that have the same keys. Each
  * strategy has its own: a sort-merge join takes them as their shuffle brought them (SortMergeJoinExec), a hash
  * table gives the last one first (HashedRelation). A condition that throws for some pair may so fail the one
  * and not the other.
  */
object FirstMatch {

  private val types = Seq("LEFT SEMI", "LEFT ANTI", "EXISTENCE")

  /** Why the join is to keep the strategy that Spark has for it, if it is. */
  def keepsSparks(facts: FactsRow): Option[String] =
    facts.string("join.type").filter(types.contains).collect {
      case joinType if facts.isTrue("join.condition_can_throw") =>
        s"a $joinType join looks for a first match, and another strategy evaluates the condition on other pairs of rows"
    }
}
