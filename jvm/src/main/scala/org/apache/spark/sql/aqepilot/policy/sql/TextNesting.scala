package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.trees.Origin

/** Refuses a text that is nested too deeply before Spark parses it: the parser's time grows with the square of the
  * nesting, or faster.
  *
  * Counts open brackets and CASEs, prefix operators in a row, lambda arrows, and the operators between two commas, ANDs
  * and the like. Each operator is a level of the parsed tree. Quoted texts and comments are skipped. One that is long
  * and not closed is refused: Spark's lexer would begin again at each of its characters.
  */
private[policy] object TextNesting {
  private val Part =
    """(?s)'(?:[^'\\]|\\.)*+('?)|"(?:[^"\\]|\\.)*+("?)|`[^`]*+(`?)|--[^\n]*+|/\*.*?(\*/|\z)|->|\w++|\S""".r

  /** @throws TextCheck.Refused at the part that goes too deep */
  def check(text: String): Unit = {
    var (open, prefixes, arrows, parts) = (0, 0, 0, 0)
    // Of each open bracket, the operators since the last comma or the like.
    val operators = new Array[Int](MaxOpen + 2)
    Part.findAllMatchIn(text).foreach { part =>
      val word = part.matched.toLowerCase(Locale.ROOT)
      word match {
        case "(" | "[" | "case" =>
          open += 1
          if (open <= MaxOpen) operators(open) = 0
        case ")" | "]" | "end"          => open = math.max(0, open - 1)
        case "->"                       => arrows += 1
        case ends if Ends(ends)         => operators(open) = 0
        case other if isOperator(other) => operators(open) += 1
        case _                          =>
      }
      if (part.subgroups.contains("") && word.length > MaxOpenChars)
        TextCheck.refuse(
          PolicyError.Syntax,
          "A comment or a quoted text is not closed.",
          place(text, part.start)
        )
      prefixes = if (Prefixes(word)) prefixes + 1 else 0
      parts += 1
      if (open > MaxOpen || prefixes > MaxOpen || arrows > MaxOpen)
        tooComplex(s"is nested more than $MaxOpen levels deep: write it flatter", text, part.start)
      if (operators(open) > MaxOperators)
        tooComplex(s"has more than $MaxOperators operators in a row", text, part.start)
      if (parts > MaxParts) tooComplex(s"has more than $MaxParts words and signs", text, part.start)
    }
  }

  private val MaxOpen = 100
  private val MaxOpenChars = 1000
  private val MaxOperators = 1000
  private val MaxParts = 300000
  private val Prefixes = Set("-", "+", "~", "!", "not")
  private val Ends = Set(",", "and", "or", "when", "then", "else")
  private val Operators = Set("div", "is", "like", "ilike", "rlike", "in", "between", "collate")

  private def isOperator(part: String): Boolean =
    Operators(part) || (part.length == 1 && !Character.isLetterOrDigit(part.head) && part != "_")

  private def tooComplex(what: String, text: String, at: Int) =
    TextCheck.refuse(PolicyError.TooComplex, s"The text $what.", place(text, at))

  private def place(text: String, offset: Int): Origin = {
    val before = text.substring(0, offset)
    Origin(Some(before.count(_ == '\n') + 1), Some(offset - (before.lastIndexOf('\n') + 1)))
  }
}
