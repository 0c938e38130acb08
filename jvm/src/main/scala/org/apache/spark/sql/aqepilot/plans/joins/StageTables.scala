package org.apache.spark.sql.aqepilot.plans.joins

import java.util.Collections
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.aqepilot.decision.Guards
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

/** What is remembered of a join's hash table, where a policy has it built. */
final class TableState {

  /** Bytes of one task's table; 0 where Spark plans the join. */
  @volatile private[aqepilot] var bytes: Long = 0L

  /** The joins above that may run in the same tasks. */
  private[aqepilot] val above =
    Collections.newSetFromMap(new ConcurrentHashMap[JoinState, java.lang.Boolean]())
}

/** The hash tables that tasks build for several joins of policies' choice: a task keeps those of all the shuffled hash
  * joins of its stage until it ends. Which joins will share a stage is not known before they are planned: those are
  * taken together that lie above each other and have a column of their conditions in common.
  */
private[aqepilot] object StageTables {

  /** Why a join's table does not fit beside those of the other joins, if so.
    *
    * @param bytes
    *   of its own table
    */
  def refusal(join: Join, state: JoinState, bytes: Long, guards: Guards): Option[String] = {
    var others = beneath(join).toSet
    state.tables.above.forEach(join => others += join)
    guards.hashBuildTooLarge(bytes, (others - state).toSeq.map(_.tables.bytes).sum)
  }

  /** @param bytes
    *   of its table; 0 where none is built as a policy decided
    */
  def note(join: Join, state: JoinState, bytes: Long): Unit = {
    state.tables.bytes = bytes
    if (bytes > 0) beneath(join).foreach(_.tables.above.add(state))
  }

  private def beneath(join: Join): Seq[JoinState] = {
    val keys = references(join)
    if (keys.isEmpty) Nil
    else Seq(join.left, join.right).flatMap(beneath(_, keys, isRenamed = false))
  }

  /** @param isRenamed
    *   whether a key has another name beneath: then a join there cannot be told from one on that key
    */
  private def beneath(
      plan: LogicalPlan,
      keys: AttributeSet,
      isRenamed: Boolean
  ): Seq[JoinState] = plan match {
    case j: Join if isRenamed || references(j).exists(keys.contains) =>
      JoinState.of(j).toSeq ++ j.children.flatMap(beneath(_, keys, isRenamed))
    case _: Join => Nil
    case other   =>
      val isMade =
        isRenamed || keys.exists(k => other.outputSet.contains(k) && !other.inputSet.contains(k))
      other.children.flatMap(beneath(_, keys, isMade))
  }

  private def references(join: Join): AttributeSet =
    join.condition.fold(AttributeSet.empty)(_.references)
}
