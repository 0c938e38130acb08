package org.apache.spark.sql.aqepilot.plans.shuffles

import java.util.{Collections, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.facts.OncePerNode
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}

/** Numbers shuffles such that equal ones have the same number. What tells two apart is their canonical form,
  * without the numbers of partitions of the shuffles that Spark added.
  *
  * A canonical form takes long to make, so that only shuffles which may be equal get one: those that read the same
  * files through as many exchanges, and those that read anything else.
  *
  * Kept for a query: a number means the same at each of its re-plans. Where a re-plan has several that may be equal,
  * and those before it had one, the first of them has its number, be it another shuffle.
  */
final class ShuffleShapes {

  private val nodes = mutable.HashMap.empty[Any, Int]
  private val byForm = mutable.HashMap.empty[Int, Int]
  private val byFiles = mutable.HashMap.empty[ShuffleShapes.Files, Int]
  private val ambiguous = mutable.HashSet.empty[ShuffleShapes.Files]
  private var latest = 0

  private def next(): Int = {
    latest += 1
    latest
  }

  /** Numbers the shuffles of one planning.
    *
    * @param shuffles
    *   all of them, those that are stages included
    */
  def numbering(shuffles: Seq[SparkPlan]): SparkPlan => Int = synchronized {
    val files = new FilesRead
    val form = new Forms
    val seen = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean]())
    val numbers = new IdentityHashMap[SparkPlan, Int]()
    shuffles.filter(seen.add).groupBy(files.filesOf).foreach {
      case (Some(read), Seq(only)) if !ambiguous(read) =>
        numbers.put(only, byFiles.getOrElseUpdate(read, next()))
      case (read, several) =>
        ambiguous ++= read
        several.foreach { shuffle =>
          def number = read.flatMap(byFiles.remove).getOrElse(next())
          numbers.put(shuffle, byForm.getOrElseUpdate(form.number(shuffle.canonicalized), number))
        }
    }
    numbers.get(_)
  }

  /** Numbers the nodes of canonical forms, which share them. A node is looked at with the numbers of its children, so
    * that all shuffles of a plan take as long as one pass over it.
    */
  private class Forms {
    import ShuffleShapes.Child

    val number: SparkPlan => Int =
      new OncePerNode[SparkPlan, Int](plan => nodes.getOrElseUpdate(key(plan), nodes.size))

    // Spark's own comparison of nodes is by class and product; leaves bring their own where it is not.
    private def key(plan: SparkPlan): Any =
      if (plan.children.isEmpty) plan
      else {
        val node = plan match {
          case e: ShuffleExchangeExec if ShuffleGroups.isSparks(e) => ShuffleGroups.withNumber(e, 1)
          case other                                               => other
        }
        def isChild(arg: SparkPlan) = plan.children.exists(_ eq arg)
        def arg(value: Any): Any = value match {
          case p: SparkPlan if isChild(p) => Child(number(p))
          case s: Seq[_]                  => s.map(arg)
          case other                      => other
        }
        (node.getClass, node.productIterator.map(arg).toList)
      }
  }

  /** What plans read, where that is files and nothing else: equal canonical forms read the same. */
  private class FilesRead {
    import ShuffleShapes.Files

    val filesOf: SparkPlan => Option[Files] = new OncePerNode(read)

    private def read(plan: SparkPlan): Option[Files] = plan match {
      case s: QueryStageExec               => filesOf(s.plan)
      case r: ReusedExchangeExec           => filesOf(r.child)
      case s: FileSourceScanExec           => Some(Files(s.relation.location.hashCode, 1, 0))
      case other if other.children.isEmpty => None
      case other                           =>
        val here = Files(0, 0, if (other.isInstanceOf[Exchange]) 1 else 0)
        other.children.foldLeft(Option(here)) { (sum, child) =>
          sum.flatMap(s => filesOf(child).map(s + _))
        }
    }
  }
}

private object ShuffleShapes {

  final case class Child(number: Int)

  /** @param locations
    *   the sum of the hash codes of the scans' `FileIndex`, which canonical forms keep
    */
  final case class Files(locations: Long, scans: Int, exchanges: Int) {
    def +(that: Files): Files =
      Files(locations + that.locations, scans + that.scans, exchanges + that.exchanges)
  }
}
