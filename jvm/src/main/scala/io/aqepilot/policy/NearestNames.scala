package io.aqepilot.policy

import java.util.Locale

import org.apache.spark.sql.types.{StructType, DataType}
import org.apache.spark.unsafe.types.UTF8String

/** The known names that a mistyped one most likely stands for. */
object NearestNames {
  private val MaxSuggestions   = 3
  private val MaxComparedChars = 100

  /** Every path of a facts schema, structs included, in its order: `side`, `side.max_bytes`, ... */
  def paths(facts: StructType, prefix: String = ""): Seq[String] =
    facts.fields.toSeq.flatMap { field =>
      val path = prefix + field.name
      path +: ((field.dataType: DataType) match {
        case struct: StructType => paths(struct, path + ".")
        case _                  => Nil
      })
    }

  /**
   * At most three of `known`, best first.
   *
   * A name given without its struct (`max_bytes`) is near to the paths that end with it.
   */
  def of(name: String, known: Seq[String]): Seq[String] =
    if (name.length > MaxComparedChars) Nil
    else {
      val wanted    = name.toLowerCase(Locale.ROOT)
      val threshold = math.max(2, wanted.length / 3)
      known
        .map(candidate => candidate -> distance(wanted, candidate.toLowerCase(Locale.ROOT)))
        .filter(_._2 <= threshold)
        .sortBy(_._2)
        .take(MaxSuggestions)
        .map(_._1)
    }

  private def distance(wanted: String, candidate: String): Int = {
    val whole = edits(wanted, candidate)
    val leaf  = candidate.substring(candidate.lastIndexOf('.') + 1)
    if (leaf == candidate) whole
    else math.min(whole, edits(wanted.substring(wanted.lastIndexOf('.') + 1), leaf) + 1)
  }

  private def edits(a: String, b: String): Int =
    UTF8String.fromString(a).levenshteinDistance(UTF8String.fromString(b))
}
