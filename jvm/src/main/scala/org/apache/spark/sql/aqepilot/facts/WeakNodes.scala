package org.apache.spark.sql.aqepilot.facts

import java.lang.ref.{ReferenceQueue, WeakReference}
import java.util.concurrent.ConcurrentHashMap

/** What is computed once for each node, told apart by identity, for as long as somebody else has the node. For any
  * number of threads; two that come at once may both compute it.
  *
  * @tparam V
  *   must not hold the node
  */
final private[aqepilot] class WeakNodes[K <: AnyRef, V <: AnyRef] {
  import WeakNodes._

  private val collected = new ReferenceQueue[AnyRef]
  private val known = new ConcurrentHashMap[Key, V]

  def apply(node: K)(compute: => V): V = {
    val before = known.get(new Key(node, null))
    if (before != null) before
    else {
      forget()
      val made = compute
      known.put(new Key(node, collected), made)
      made
    }
  }

  private[aqepilot] def size: Int = {
    forget()
    known.size
  }

  private def forget(): Unit = {
    var key = collected.poll()
    while (key != null) {
      known.remove(key)
      key = collected.poll()
    }
  }
}

private object WeakNodes {

  /** Is equal to itself when its node is gone. */
  final private class Key(node: AnyRef, queue: ReferenceQueue[AnyRef])
      extends WeakReference[AnyRef](node, queue) {
    private val hash = System.identityHashCode(node)
    override def hashCode: Int = hash
    override def equals(other: Any): Boolean = other match {
      case key: Key => (this eq key) || (get != null && (get eq key.get))
      case _        => false
    }
  }
}
