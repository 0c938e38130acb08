package org.apache.spark.sql.aqepilot.policy.sql

/** What of a regular expression's cost is not seen by who counts the characters that are read: repeating or choosing
  * among parts that match no character, as in `(?:|){60}`.
  */
private[policy] object RegexCost {
  private val MaxRepeats = 1000000.0
  private val MaxChoices = math.log(16000000.0)
  private val Skipped = """\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?"""
  private val Count = """\{(\d+)(?:,(\d+))?"""
  private val Part = s"(?s)$Skipped|[(|]|\\)(?:$Count)?|$Count".r

  /** By the product of all counts of repetitions, and by that of the alternatives of all groups. */
  def isTooHigh(regex: String): Boolean = {
    var repeats = 1.0
    // Of each open group: the choices within it, as a logarithm, and its own alternatives.
    var groups = List((0.0, 1))
    Part.findAllMatchIn(regex).foreach { part =>
      val times = (1 to 4).map(part.group).filter(_ != null).map(_.toDouble).foldLeft(1.0)(math.max)
      (part.matched.head, groups) match {
        case ('(', _)                                 => groups ::= ((0.0, 1))
        case ('|', (choices, alternatives) :: others) =>
          groups = (choices, alternatives + 1) :: others
        case (')', (choices, alternatives) :: (outer, own) :: others) =>
          groups = (outer + times * (choices + math.log(alternatives.toDouble)), own) :: others
        case _ =>
      }
      repeats *= times
    }
    repeats > MaxRepeats || groups.map(_._1).sum > MaxChoices
  }
}
