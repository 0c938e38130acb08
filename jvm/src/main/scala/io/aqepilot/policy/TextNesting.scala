package io.aqepilot.policy

import java.util.Locale

import org.apache.spark.sql.catalyst.trees.Origin

/** Refuses a text that is nested too deeply before Spark's parser sees it, whose time grows with
  * the square of the nesting and worse.
  *
  * Counted are open brackets and CASEs, prefix operators in a row and lambda arrows; what stands in
  * quotes and comments is not.
  */
private[policy] object TextNesting {
  private val Part =
    """(?s)'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?|`[^`]*+`?|--[^\n]*+|/\*.*?\*/|->|\w++|\S""".r

  /** @throws TextCheck.Refused at the part that goes too deep */
  def check(text: String): Unit = {
    var (open, prefixes, arrows) = (0, 0, 0)
    Part.findAllMatchIn(text).foreach { part =>
      val isPrefix = part.matched.toLowerCase(Locale.ROOT) match {
        case "(" | "[" | "case" => open += 1; false
        case ")" | "]" | "end"  => open = math.max(0, open - 1); false
        case "->"               => arrows += 1; false
        case other              => Prefixes(other)
      }
      prefixes = if (isPrefix) prefixes + 1 else 0
      if (open > MaxOpen || prefixes > MaxOpen || arrows > MaxOpen)
        TextCheck.refuse(
          PolicyError.TooComplex,
          s"The text is nested more than $MaxOpen levels deep: write it flatter.",
          place(text, part.start)
        )
    }
  }

  private val MaxOpen = 100
  private val Prefixes = Set("-", "+", "~", "!", "not")

  private def place(text: String, offset: Int): Origin = {
    val before = text.substring(0, offset)
    Origin(Some(before.count(_ == '\n') + 1), Some(offset - (before.lastIndexOf('\n') + 1)))
  }
}
