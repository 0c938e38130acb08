package io.aqepilot.decision

import org.apache.spark.sql.types.{DataType, StructField, StructType}

/** A word of a point's decision vocabulary, in Spark's own spelling. */
final case class Word(word: String, meaning: String)

/** A class, and optionally a method of it, that a point needs of the running Spark. */
final case class Need(className: String, method: Option[String] = None)

/** A place where Spark chooses and a policy may choose instead.
  *
  * Adding a point is one object that extends this trait, one row in [[DecisionPoints]] and one file in
  * `tests/cases`.
  */
trait DecisionPoint {

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

  /** Type of an answer. Null always means: leave it to Spark's own rule. */
  def answer: DataType

  /** The answers there are, where the answer is a word. */
  def words: Seq[Word]

  /** What of Spark's private classes the point cannot do without. */
  def needs: Seq[Need]
}

/** All decision points, in the order in which Spark comes to them. */
object DecisionPoints {
  val all: Seq[DecisionPoint] = Seq(DynamicJoinSelectionPoint)

  val names: Seq[String] = all.map(_.name)

  def named(name: String): Option[DecisionPoint] = all.find(_.name == name)

  /** The facts that a policy's `when` may use: those known before any point is asked. */
  val whenFacts: StructType = StructType(Seq(CommonFacts.query))

  /** Path, type and meaning of each leaf of a facts schema, e.g. `side.max_bytes`. */
  def leaves(schema: StructType, prefix: String = ""): Seq[(String, StructField)] =
    schema.fields.toSeq.flatMap { field =>
      field.dataType match {
        case nested: StructType => leaves(nested, s"$prefix${field.name}.")
        case _                  => Seq((prefix + field.name, field))
      }
    }
}
