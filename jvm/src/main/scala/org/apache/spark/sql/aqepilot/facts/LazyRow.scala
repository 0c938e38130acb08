package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BaseGenericInternalRow, GenericInternalRow}
import org.apache.spark.sql.internal.SQLConf

/** A fact could not be computed: a fault of ours, not of the policy that reads it. */
final class FactFault(cause: Throwable) extends RuntimeException(cause)

private[aqepilot] object FactFault {

  /** Spark's expressions wrap what is thrown below them. */
  def in(e: Throwable): Option[FactFault] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).collectFirst {
      case fault: FactFault => fault
    }
}

/** A row whose values are computed when they are first read: a query waits for the facts that its policies
  * read, and for those that only its own thread can tell.
  *
  * They are computed under the settings under which the row was made: a policy is evaluated under others.
  *
  * A value that cannot be computed throws [[org.apache.spark.sql.aqepilot.facts.FactFault]]. Holds what its values are
  * computed from until it is [[finish]]ed. The thread that asks and the record's may read it at the same time.
  *
  * @param settled
  *   the ordinals of those that are not fixed
  */
final class LazyRow private[facts] (
    reads: Array[Any => Any],
    settled: Array[Int],
    private var from: Any
) extends BaseGenericInternalRow {

  private var settings = SQLConf.get
  private var isFinished = false
  private val computed = new Array[Any](reads.length)
  private val isComputed = new Array[Boolean](reads.length)

  override def numFields: Int = reads.length

  override protected def genericGet(ordinal: Int): Any = synchronized {
    if (!isComputed(ordinal)) SQLConf.withExistingConf(settings)(compute(ordinal))
    computed(ordinal)
  }

  /** Under the row's settings. */
  private def compute(ordinal: Int): Unit = {
    computed(ordinal) =
      try reads(ordinal)(from)
      catch {
        case e: FactFault            => throw e
        case e: InterruptedException => throw e
        case e: Throwable            => throw new FactFault(e)
      }
    isComputed(ordinal) = true
  }

  override def setNullAt(i: Int): Unit = update(i, null)

  override def update(i: Int, value: Any): Unit = synchronized {
    computed(i) = value
    isComputed(i) = true
  }

  /** Computes the values that are not fixed, those of rows within it, too: later they may be others. */
  def settle(): Unit = synchronized {
    if (!isFinished) SQLConf.withExistingConf(settings)(settleAll())
  }

  /** Under the row's settings, which are those of the rows within it. */
  private def settleAll(): Unit = synchronized {
    if (!isFinished) {
      var i = 0
      while (i < settled.length) {
        val ordinal = settled(i)
        if (!isComputed(ordinal)) compute(ordinal)
        computed(ordinal) match {
          case row: LazyRow => row.settleAll()
          case _            =>
        }
        i += 1
      }
    }
  }

  /** Computes all values, and holds nothing else any more. One that cannot be computed is null. */
  def finish(): Unit = synchronized {
    if (!isFinished) LazyRow.finishing(SQLConf.withExistingConf(settings) {
      for (i <- reads.indices) {
        if (!isComputed(i)) FailOpen("facts", setNullAt(i))(compute(i))
        computed(i) match {
          case row: LazyRow => row.finish()
          case _            =>
        }
      }
    })
    isFinished = true
    from = null
    settings = null
  }

  /** All values, computed. */
  override def copy(): GenericInternalRow = synchronized {
    new GenericInternalRow(Array.tabulate[Any](numFields) { ordinal =>
      genericGet(ordinal) match {
        case row: InternalRow => row.copy()
        case value            => value
      }
    })
  }
}

private[facts] object LazyRow {

  private val isFinishing = new ThreadLocal[java.lang.Boolean]

  private def finishing(body: => Unit): Unit = {
    val before = isFinishing.get
    isFinishing.set(true)
    try body
    finally if (before == null) isFinishing.remove()
  }

  /** Fails where a row is being finished, maybe by another thread than its query's. */
  def assertIsNotFinishing(what: String): Unit =
    if (isFinishing.get != null)
      throw new IllegalStateException(s"$what: no fixed fact is read from it")
}
