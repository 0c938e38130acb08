package org.apache.spark.sql.aqepilot.facts

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/** Names a sub-plan on each run of its query: under any order of inner joins, any strategy and number of partitions,
  * and after AQE has planned anew.
  *
  * @param same
  *   of the sub-plan with its literals, but for those of conditions on nothing but dates, timestamps and partition columns
  * @param shape
  *   of the sub-plan without its literals
  */
final case class Signature(same: Long, shape: Long) {

  /** 16 hex digits. */
  def sameText: String = Signature.hex(same)

  /** 16 hex digits. */
  def shapeText: String = Signature.hex(shape)
}

/** Each is the first 8 bytes of the SHA-256 of a text, which [[SubPlanText]] writes over the ''optimised'' plan. */
object Signature {

  def hex(form: Long): String = f"$form%016x"

  /** None where the plan is too deep, or strange, to be read. */
  def of(plan: LogicalPlan): Option[Signature] = made(_.of(plan))

  /** Of a shuffle of a sub-plan's rows. A name that differs from the sub-plan's own, as its partitions are
    * those of these keys.
    *
    * @param keys
    *   over the output of the plan, their order does not count; none for a shuffle by no key
    */
  def shuffled(plan: LogicalPlan, keys: Seq[Expression]): Option[Signature] =
    made(_.shuffled(plan, keys))

  /** Of the rows that an aggregate's tasks put out before their shuffle, one for each group and task at most. */
  def partial(aggregate: Aggregate): Option[Signature] = made(_.partial(aggregate))

  /** Of the shuffle of those rows. */
  def partialShuffled(aggregate: Aggregate, keys: Seq[Expression]): Option[Signature] =
    made(_.partialShuffled(aggregate, keys))

  /** Of the inner join of some relations: what [[of]] makes of any tree of joins of them.
    *
    * @param conditions
    *   among these relations, or within one
    */
  def ofSet(relations: Seq[LogicalPlan], conditions: Seq[Expression]): Option[Signature] =
    made(_.ofSet(relations, conditions))

  /** Tells the relations of an inner join apart: of each what it is and, where others are the same, the conditions that it
    * is in. Relations that nothing tells apart are numbered.
    *
    * @return
    *   16 hex digits for each; none where one is too deep, or strange, to be read
    */
  def within(relations: Seq[LogicalPlan], conditions: Seq[Expression]): Seq[String] =
    FailOpen("signature", Seq.empty[String]) {
      val names = SubPlanText.Same.within(relations, conditions)
      names.zipWithIndex.map { case (name, i) =>
        val before = names.take(i).count(_ == name)
        if (before == 0) name else hex(hash(s"$name $before"))
      }
    }

  /** What is hashed. */
  private[aqepilot] def text(plan: LogicalPlan, keepsLiterals: Boolean): String =
    (if (keepsLiterals) SubPlanText.Same else SubPlanText.Shape).of(plan)

  private def made(text: SubPlanText => String): Option[Signature] =
    FailOpen("signature", Option.empty[Signature]) {
      Some(Signature(hash(text(SubPlanText.Same)), hash(text(SubPlanText.Shape))))
    }

  private[facts] def hash(text: String): Long =
    ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))).getLong
}
