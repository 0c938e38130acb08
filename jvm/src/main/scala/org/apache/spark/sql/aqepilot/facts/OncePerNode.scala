package org.apache.spark.sql.aqepilot.facts

import java.util.IdentityHashMap

/** What is computed once for each node, told apart by identity; the computation may ask for other nodes'. Not
  * thread-safe.
  */
final private[aqepilot] class OncePerNode[K <: AnyRef, V](compute: K => V) extends (K => V) {

  private val known = new IdentityHashMap[K, V]()

  override def apply(node: K): V =
    if (known.containsKey(node)) known.get(node)
    else {
      val made = compute(node)
      known.put(node, made)
      made
    }
}
