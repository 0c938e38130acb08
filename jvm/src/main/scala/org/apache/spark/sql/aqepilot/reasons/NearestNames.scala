package org.apache.spark.sql.aqepilot.reasons

import java.util.Locale

import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** The known names that a mistyped one most likely stands for. */
object NearestNames {
  private val MaxSuggestions = 3
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

  /** At most three of `known`, best first.
    *
    * A name given without its struct (`max_bytes`) is near to the paths that end with it.
    */
  def of(name: String, known: Seq[String]): Seq[String] =
    if (name.length > MaxComparedChars) Nil
    else {
      val wanted = name.toLowerCase(Locale.ROOT)
      val near = known
        .flatMap(name => distance(wanted, name.toLowerCase(Locale.ROOT)).map(name -> _))
        .sortBy(_._2)
      near.takeWhile(_._2 <= near.head._2 + 1).take(MaxSuggestions).map(_._1)
    }

  /** The end of a sentence that refuses a name: `; did you mean a or b? Known: a, b, c`. */
  def instead(name: String, known: Seq[String]): String = {
    val question = of(name, known) match {
      case Nil  => "."
      case near => s"; did you mean ${near.mkString(" or ")}?"
    }
    s"$question Known: ${known.mkString(", ")}"
  }

  private def distance(wanted: String, candidate: String): Option[Int] =
    near(wanted, candidate).orElse(near(leaf(wanted), leaf(candidate)).map(_ + MaxComparedChars))

  // One mistake in a short name, at most four in a long one.
  private def near(a: String, b: String): Option[Int] =
    Some(UTF8String.fromString(a).levenshteinDistance(UTF8String.fromString(b)))
      .filter(_ <= math.max(1, math.min(a.length, 12) / 3))

  private def leaf(path: String) = path.substring(path.lastIndexOf('.') + 1)
}
