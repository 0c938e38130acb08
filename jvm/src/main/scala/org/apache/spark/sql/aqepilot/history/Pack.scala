package org.apache.spark.sql.aqepilot.history

import java.util.Arrays

/** That history of a signature is not to be used.
  *
  * @param until
  *   milliseconds since 1970
  */
final case class Held(signature: Long, until: Long, reason: String)

/** What is remembered of a signature: its past runs, or that they are not to be used. */
sealed trait Remembered
final case class Seen(past: PastRuns) extends Remembered
final case class Withheld(held: Held) extends Remembered

/** The past runs of many signatures, in sorted arrays of primitive values.
  *
  * @param same
  *   of the same sub-plans
  * @param shapes
  *   of sub-plans of the same shape
  */
final private[history] class Pack(same: Pack.Form, shapes: Pack.Form) {

  def signatures: Int = same.signatures + shapes.signatures

  def held: Seq[Held] = same.held ++ shapes.held

  /** When the newest run of all ended, milliseconds since 1970; none of no run. */
  def newest: Option[Long] = (same.newest ++ shapes.newest).reduceOption(_ max _)

  /** Of the same sub-plan, else of its shape; none where neither was ever seen.
    *
    * @param now
    *   milliseconds since 1970
    */
  def find(same: Long, shape: Long, kind: String, now: Long): Option[Remembered] =
    this.same.find(same, kind, now).orElse(shapes.find(shape, kind, now))
}

private[history] object Pack {

  val empty = new Pack(Form.empty, Form.empty)

  /** The signatures of one form.
    *
    * @param tables
    *   by kind
    * @param held
    *   sorted by signature
    */
  final class Form(isSame: Boolean, tables: Map[String, Table], val held: IndexedSeq[Held]) {

    private val heldSignatures = held.map(_.signature).toArray

    def signatures: Int = tables.values.map(_.signatures.length).sum

    def newest: Option[Long] = tables.values.flatMap(_.newest(isSame)).reduceOption(_ max _)

    def find(signature: Long, kind: String, now: Long): Option[Remembered] = {
      val at = Arrays.binarySearch(heldSignatures, signature)
      if (at >= 0 && held(at).until > now) Some(Withheld(held(at)))
      else tables.get(kind).flatMap(_.find(signature, isSame)).map(Seen(_))
    }
  }

  object Form {
    val empty = new Form(true, Map.empty, IndexedSeq.empty)
  }

  /** @param signatures
    *   sorted
    * @param figures
    *   `PastRuns.Width` of each
    */
  final class Table(val signatures: Array[Long], figures: Array[Long]) {

    def find(signature: Long, isSame: Boolean): Option[PastRuns] = {
      val at = Arrays.binarySearch(signatures, signature)
      if (at < 0) None else Some(past(at, isSame))
    }

    def newest(isSame: Boolean): Option[Long] =
      signatures.indices.map(past(_, isSame).newest).reduceOption(_ max _)

    private def past(at: Int, isSame: Boolean) = new PastRuns(isSame, figures, at * PastRuns.Width)
  }
}
