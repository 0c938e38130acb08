package org.apache.spark.sql.aqepilot.rule

/** The latest answer about one thing in a plan that is planned again and again: asked for anew when something that it
  * depends on has changed, and recorded when the answer or what became of it is new. Its owner's monitor guards it.
  *
  * @tparam A
  *   what asking gives
  */
final class Memory[A] {

  private var latest: Option[(PointRule.Key, A)] = None
  private var recorded: Option[(PointRule.Key, Any)] = None
  private var askings = 0

  /** How often was asked. */
  def number: Int = askings

  /** The latest answer. */
  def answer: Option[A] = latest.map(_._2)

  /** The answer for a key: the latest, or a new one. */
  def of(key: PointRule.Key)(ask: => A): A = latest match {
    case Some((known, answer)) if known == key => answer
    case _                                     =>
      askings += 1
      val answer = ask
      latest = Some((key, answer))
      answer
  }

  def forget(): Unit = latest = None

  /** Records the latest answer and what became of it, if either is new.
    *
    * @param record
    *   takes the answer's number: what is recorded is put into words later, when there may be a newer answer
    */
  def once(outcome: Any)(record: Int => Unit): Unit = {
    val now = latest.map { case (key, _) => (key, outcome) }
    if (now != recorded) {
      recorded = now
      record(askings)
    }
  }
}
