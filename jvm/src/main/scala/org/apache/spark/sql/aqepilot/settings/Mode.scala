package org.apache.spark.sql.aqepilot.settings

/** How far a policy may go. */
sealed abstract class Mode(val name: String, val rank: Int) {
  def atMost(other: Mode): Mode = if (rank <= other.rank) this else other
}

object Mode {
  case object Off extends Mode("off", 0)
  case object Shadow extends Mode("shadow", 1)
  case object Enforce extends Mode("enforce", 2)

  private val all = Seq(Off, Shadow, Enforce)

  val words: Seq[String] = all.map(_.name)

  /** An unknown word counts as off: nobody asked for a decision. */
  def of(word: String): Mode = all.find(_.name == word).getOrElse(Off)
}
