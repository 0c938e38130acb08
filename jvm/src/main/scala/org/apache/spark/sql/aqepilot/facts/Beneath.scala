package org.apache.spark.sql.aqepilot.facts

import java.lang.ref.WeakReference

import org.apache.spark.sql.catalyst.expressions.PredicateHelper
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}

/** What of a plan follows from that of its parts.
  *
  * Each join keeps its own, so that the facts of all joins of a query take as long as one pass over its plan.
  */
sealed abstract private[aqepilot] class Beneath[T](kept: BeneathJoin => KeptOfJoin[T]) {

  /** Of a node, by what its parts have. */
  protected def whole(plan: LogicalPlan, parts: Seq[T]): T

  /** Of a stage, by what its plan has. */
  protected def stage(plan: LogicalPlan): T = apply(plan)

  def apply(plan: LogicalPlan): T = plan match {
    case Stage(plan, _) => stage(plan)
    case join: Join     =>
      BeneathJoin.of(join).fold(computed(join))(kept(_).of(join)(computed(join)))
    case other => computed(other)
  }

  private def computed(plan: LogicalPlan): T = whole(plan, plan.children.map(apply))
}

/** What a join keeps of what is beneath it. */
final private[aqepilot] class BeneathJoin {
  val leaves = new KeptOfJoin[Seq[LeafName]]
  val filters = new KeptOfJoin[Seq[String]]
  val joins = new KeptOfJoin[Int]
  val hasStage = new KeptOfJoin[Boolean]
}

private[aqepilot] object BeneathJoin {

  private val tag = TreeNodeTag[BeneathJoin]("aqepilot.beneath")

  /** Has a join keep what is beneath it, its copies too. */
  def start(join: Join): Unit = join.setTagValue(tag, new BeneathJoin)

  def of(join: Join): Option[BeneathJoin] = join.getTagValue(tag)
}

/** A value of a join, as long as it is asked of that very node. Does not keep the node. */
final private[aqepilot] class KeptOfJoin[T] {

  @volatile private var last: Option[(WeakReference[Join], T)] = None

  def of(join: Join)(value: => T): T = last match {
    case Some((node, known)) if node.get eq join => known
    case _                                       =>
      val made = value
      last = Some((new WeakReference(join), made))
      made
  }
}

/** A leaf for a person: its table's name, or the node's for what is no table. */
final private[aqepilot] case class LeafName(word: String, isTable: Boolean)

private[aqepilot] object Beneath {

  object leaves extends Beneath[Seq[LeafName]](_.leaves) {
    override protected def whole(plan: LogicalPlan, parts: Seq[Seq[LeafName]]): Seq[LeafName] =
      if (parts.isEmpty) Vector(name(plan)) else parts.reduceLeft(_ ++ _)

    private def name(leaf: LogicalPlan) = Tables.name(leaf) match {
      case Some(table) => LeafName(table, isTable = true)
      case None        => LeafName(leaf.nodeName, isTable = false)
    }
  }

  /** The conditions of filters, as SQL, in plan order. */
  object filters extends Beneath[Seq[String]](_.filters) with PredicateHelper {
    override protected def whole(plan: LogicalPlan, parts: Seq[Seq[String]]): Seq[String] = {
      val below = parts.reduceLeftOption(_ ++ _).getOrElse(Vector.empty)
      plan match {
        case f: Filter => below ++ splitConjunctivePredicates(f.condition).map(_.sql)
        case _         => below
      }
    }
  }

  object joins extends Beneath[Int](_.joins) {
    override protected def whole(plan: LogicalPlan, parts: Seq[Int]): Int =
      parts.sum + (if (plan.isInstanceOf[Join]) 1 else 0)
  }

  /** Whether some of it runs already. */
  object hasStage extends Beneath[Boolean](_.hasStage) {
    override protected def stage(plan: LogicalPlan): Boolean = true
    override protected def whole(plan: LogicalPlan, parts: Seq[Boolean]): Boolean =
      parts.contains(true)
  }
}
