package org.apache.spark.sql.vendorforks

import java.lang.reflect.Method
import java.util.concurrent.atomic.AtomicIntegerArray

import org.apache.xbean.asm9.Type

/** What our classes find when they look for what Spark has, on a Spark that lacks something. */
object Probes {

  @volatile private var missing: Set[Missing] = Set.empty
  @volatile private var found = false

  def start(of: Set[Missing]): Unit = {
    missing = of
    found = false
  }

  /** Whether what is missing was looked for. */
  def wereAsked: Boolean = found

  private val reached = new AtomicIntegerArray(1 << 16)

  /** What our classes come to, of what they may miss. */
  def hit(id: Int): Unit = reached.set(id, 1)

  /** What was come to since it was last asked. */
  def takeHits(): Set[Int] =
    (0 until reached.length).filter(reached.getAndSet(_, 0) == 1).toSet

  def getMethods(c: Class[_]): Array[Method] = {
    val (gone, there) = c.getMethods.partition(m => missing.exists(isGone(_, c, m)))
    if (gone.nonEmpty) found = true
    there
  }

  private def isGone(of: Missing, c: Class[_], m: Method): Boolean = {
    val owner = of.owner.replace('/', '.')
    of.name == m.getName && (of.kind match {
      case "probe"  => c.getName == owner
      case "method" =>
        m.getDeclaringClass.getName == owner && Type.getMethodDescriptor(m) == of.descriptor
      case _ => false
    })
  }

  def forName(name: String, initialize: Boolean, loader: ClassLoader): Class[_] = {
    if (missing.exists(m => m.kind == "class" && m.text == name)) {
      found = true
      throw new ClassNotFoundException(name)
    }
    Class.forName(name, initialize, loader)
  }
}
