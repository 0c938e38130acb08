package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.{FactsJson, FactsRow}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{DataType, StructType}

/** A word of a point's decision vocabulary, in Spark's own spelling. */
final case class Word(word: String, meaning: String)

/** A class, and optionally a method of it, that a point needs of the running Spark. */
final case class Need(className: String, method: Option[String] = None)

object Need {

  /** To know how the query's author wants the result distributed. 3.5.0 lacks the hook. */
  val ofRequiredDistribution: Seq[Need] = Seq(
    Need(
      "org.apache.spark.sql.SparkSessionExtensions",
      Some("injectQueryPostPlannerStrategyRule")
    )
  )
}

/** A place where Spark chooses and a policy may choose instead.
  *
  * Adding a point is one object that extends this trait, its name in [[DecisionPoints]] and one file in
  * `tests/cases`.
  *
  * @tparam D
  *   what an answer says, as a type of the point's own; equal where two answers say the same
  */
trait DecisionPoint[D] {

  /** Name in settings, files and records, e.g. `dynamic_join_selection`. */
  def name: String

  /** Spark's own rule that the point stands beside, by Spark minor where it differs. */
  def builtIn: String

  /** What the point decides, in a sentence. */
  def summary: String

  /** When a policy is asked, in a sentence. */
  def asked: String

  /** Schema of the facts row; the comment of each field is its meaning. */
  def facts: StructType

  /** Type of an answer: a word, a number, or a struct of fields each of which may be null. Null always means:
    * leave it to Spark's own rule. The comment of a struct's field is its meaning.
    */
  def answer: DataType

  /** Another type that an answer may have. */
  def alternative: Option[DataType] = None

  /** What an answer means, in a sentence. */
  def answerMeaning: String

  /** The answers there are, where the answer is a word. */
  def words: Seq[Word] = Nil

  /** What an answer says.
    *
    * @param answer
    *   a Catalyst value of the type [[answer]], never null
    */
  def parse(answer: Any): D

  /** A decision as an answer, a Catalyst value of the type [[answer]]. */
  def toAnswer(decision: D): Any

  /** Whether an answer is legal on these facts and within the guard rails, as far as the facts alone tell. */
  def judge(answer: D, facts: FactsRow, guards: Guards): Verdict[D]

  /** Answers that are worth a try on these facts, those that differ most first; [[judge]] says which of them are legal.
    * Of a number or a size there are steps on both sides of Spark's own.
    */
  def candidates(facts: FactsRow): Iterator[D]

  /** An answer as it stands in the record: a word or number as it is, a struct as JSON without its nulls, an
    * array of positions as JSON.
    */
  final def show(answer: Any): String = (answer, this.answer) match {
    case (row: InternalRow, struct: StructType) => FactsJson.writeKnown(row, struct)
    case (positions: ArrayData, _)              =>
      (0 until positions.numElements())
        .map(i => if (positions.isNullAt(i)) "null" else positions.getInt(i).toString)
        .mkString("[", ",", "]")
    case _ => answer.toString
  }

  /** Whether what it rewrites may change how rows are distributed. */
  def movesRows: Boolean = false

  /** Says what became of its decisions. */
  def fates: FateReader

  /** What of Spark's private classes the point cannot do without. */
  def needs: Seq[Need]
}

/** What a policy may not exceed.
  *
  * @param maxBroadcastBytes
  *   uncompressed bytes of a side that is broadcast
  * @param maxBroadcastTableBytes
  *   bytes of memory of the hash table that is made of it
  * @param maxHashBuildBytes
  *   bytes of memory of one task's hash table
  * @param growth
  *   bytes of a hash table per uncompressed byte of its rows, beside those per row ([[HashTable]])
  * @param maxPartitions
  *   partitions of one shuffle, and tasks of one stage that a policy splits
  * @param maxCrossProducts
  *   joins without a condition that an order of joins may have more than Spark's own
  */
final case class Guards(
    maxBroadcastBytes: Long,
    maxBroadcastTableBytes: Long,
    maxHashBuildBytes: Long,
    growth: Double,
    maxPartitions: Int,
    maxCrossProducts: Int
) {

  /** Why a task's hash table is refused that would take so many bytes, if it is.
    *
    * @param others
    *   bytes of the tables that the task may have beside it
    */
  def hashBuildTooLarge(needed: Long, others: Long = 0L): Option[String] =
    if (needed + others <= maxHashBuildBytes) None
    else {
      val beside =
        if (others == 0) "" else s" beside $others for other joins that may run in the same tasks"
      Some(
        s"a task's hash table would take about $needed bytes$beside, more than the " +
          s"$maxHashBuildBytes of spark.aqepilot.guard.max_hash_build_bytes"
      )
    }
}

object Guards {

  /** The smallest target of a partition, 1 KiB: below it a plan consists of tasks that read next to nothing. */
  val SmallestTarget: Long = 1024
}

/** What is made of an answer: the decision to carry out, if any, and why. */
final case class Verdict[+D](decision: Option[D], reason: Reason, detail: Option[String] = None)
