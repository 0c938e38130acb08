package org.apache.spark.sql.aqepilot.facts

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
  * read, and for no others.
  *
  * They are computed under the settings under which the row was made: a policy is evaluated under others.
  *
  * A value that cannot be computed throws [[org.apache.spark.sql.aqepilot.facts.FactFault]].
  *
  * Not thread-safe. Holds what its values are computed from: keep a [[copy]], not the row.
  */
final class LazyRow private[facts] (reads: Array[Any => Any], from: Any)
    extends BaseGenericInternalRow {

  private val conf = SQLConf.get
  private val computed = new Array[Any](reads.length)
  private val isComputed = new Array[Boolean](reads.length)

  override def numFields: Int = reads.length

  override protected def genericGet(ordinal: Int): Any = {
    if (!isComputed(ordinal)) SQLConf.withExistingConf(conf)(compute(ordinal))
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

  override def update(i: Int, value: Any): Unit = {
    computed(i) = value
    isComputed(i) = true
  }

  /** All values, computed. */
  override def copy(): GenericInternalRow = SQLConf.withExistingConf(conf) {
    new GenericInternalRow(Array.tabulate[Any](numFields) { ordinal =>
      if (!isComputed(ordinal)) compute(ordinal)
      computed(ordinal) match {
        case row: InternalRow => row.copy()
        case value            => value
      }
    })
  }
}
