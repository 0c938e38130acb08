package org.apache.spark.sql.aqepilot.plans

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** Numbers plans such that equal ones have the same number. What tells two plans apart is their canonical form,
  * without the numbers of partitions of the shuffles that Spark added.
  *
  * A node is looked at with the numbers of its children, so that all shuffles of a plan take as long as one pass over
  * it. Kept for a query: a number means the same at each of its re-plans.
  */
final class ShuffleShapes {

  private case class Child(number: Int)

  private val numbers = mutable.HashMap.empty[Any, Int]

  /** Numbers plans of one planning, whose canonical forms share their nodes. */
  def numbering(): SparkPlan => Int = {
    val known = new IdentityHashMap[SparkPlan, Int]()

    def number(plan: SparkPlan): Int =
      if (known.containsKey(plan)) known.get(plan)
      else {
        val found = numbers.getOrElseUpdate(key(plan), numbers.size)
        known.put(plan, found)
        found
      }

    // Spark's own comparison of nodes is by class and product; leaves bring their own where it is not.
    def key(plan: SparkPlan): Any =
      if (plan.children.isEmpty) plan
      else {
        val node = plan match {
          case e: ShuffleExchangeExec if ShuffleGroups.isSparks(e) => ShuffleGroups.withNumber(e, 1)
          case other                                               => other
        }
        def isChild(arg: SparkPlan) = plan.children.exists(_ eq arg)
        def arg(of: Any): Any = of match {
          case p: SparkPlan if isChild(p) => Child(number(p))
          case s: Seq[_]                  => s.map(arg)
          case other                      => other
        }
        (node.getClass, node.productIterator.map(arg).toList)
      }

    plan => synchronized(number(plan.canonicalized))
  }
}
