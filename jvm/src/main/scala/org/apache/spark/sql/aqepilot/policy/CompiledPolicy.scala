package org.apache.spark.sql.aqepilot.policy

import java.io.{
  ByteArrayInputStream,
  ByteArrayOutputStream,
  InputStream,
  ObjectInputStream,
  ObjectOutputStream,
  ObjectStreamClass
}
import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.sql.aqepilot.facts.FactFault
import org.apache.spark.sql.aqepilot.policy.sql.{ErrorText, FixedSemantics, Metered, TooCostly}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

/** A policy that is ready to answer, from any thread. */
trait CompiledPolicy {
  def text: String

  /** The type of its answers. */
  def answer: DataType

  /** What its revision depends on beside its text: a hash of the code that the text names. */
  def code: Option[String]

  /** Whether an answer may depend on a fact (`side.bytes_by_partition_id`), or on one of those that a struct holds. */
  def references(path: String): Boolean = true

  /** Answers for one row of facts, never by throwing, except for InterruptedException and what a [[FactFault]]
    * carries.
    *
    * @return a Catalyst value (`UTF8String`, ...) or null
    */
  def eval(facts: InternalRow): Either[EvaluationFailure, Any]

  /** Has loaded what the first answer needs. No function is called, and nothing is counted. */
  def rehearse(facts: InternalRow): Unit = ()
}

object CompiledPolicy {

  /** Runs an evaluation. What it throws is a failure of the policy, or a fault of somebody else.
    *
    * @param failure
    *   makes a failure of the policy out of what was thrown
    */
  def guarded(failure: Throwable => EvaluationFailure)(
      body: => Either[EvaluationFailure, Any]
  ): Either[EvaluationFailure, Any] =
    try body
    catch {
      case e: InterruptedException => throw e
      case e: Throwable            => FactFault.in(e) match {
          case Some(fault) => throw fault.getCause
          case None        => Left(failure(e))
        }
    }
}

/** A SQL text bound to a facts schema.
  *
  * Lambdas keep their variables inside the expression, so two threads must never share one. Each
  * evaluation borrows an instance from a pool that grows to the number of threads at work; a fresh
  * instance is a deserialised copy, since Catalyst's own copies share state.
  *
  * An evaluation that takes longer than the thread's [[AskBudget]], or makes larger values than [[Meter]] allows,
  * is ended and has failed.
  *
  * @param answer the type of its answers
  * @param reads the fact paths that the optimised expression reads
  */
final class SqlPolicy private (
    val text: String,
    val answer: DataType,
    bound: Array[Byte],
    reads: Seq[String]
) extends CompiledPolicy {
  private val idle = new ConcurrentLinkedQueue[Metered]

  override def code: Option[String] = None

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] =
    CompiledPolicy.guarded(SqlPolicy.failure) {
      FixedSemantics.under {
        val borrowed = idle.poll()
        val expression = if (borrowed == null) SqlPolicy.copy(bound) else borrowed
        expression.meter.start()
        val answer = expression.eval(facts)
        idle.offer(expression)
        Right(answer)
      }
    }

  override def rehearse(facts: InternalRow): Unit = eval(facts)

  /** Whether a fact (`side.bytes_by_partition_id`), or the struct that holds it, is read. A struct
    * (`side`) is read when any of its facts is.
    */
  override def references(path: String): Boolean =
    reads.exists(read =>
      read == path || path.startsWith(read + ".") || read.startsWith(path + ".")
    )
}

object SqlPolicy {
  private[policy] def apply(
      text: String,
      answer: DataType,
      bound: Expression,
      reads: Seq[String]
  ): SqlPolicy = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeObject(Metered(bound))
    out.close()
    new SqlPolicy(text, answer, bytes.toByteArray, reads)
  }

  private def copy(bytes: Array[Byte]): Metered =
    new LocalObjects(new ByteArrayInputStream(bytes)).readObject().asInstanceOf[Metered]

  private def failure(e: Throwable): EvaluationFailure = TooCostly.in(e) match {
    case Some(costly) => EvaluationFailure(costly.getMessage, costly.reason)
    case None         =>
      val reason =
        if (e.isInstanceOf[OutOfMemoryError]) Reason.EvaluationTooLarge else Reason.EvaluationFailed
      EvaluationFailure(ErrorText.sentence(e), reason)
  }

  /** Resolves classes as this jar does, whichever class loader the calling thread has. */
  private class LocalObjects(in: InputStream) extends ObjectInputStream(in) {
    override def resolveClass(description: ObjectStreamClass): Class[_] =
      try Class.forName(description.getName, false, SqlPolicy.getClass.getClassLoader)
      catch { case _: ClassNotFoundException => super.resolveClass(description) }
  }
}
