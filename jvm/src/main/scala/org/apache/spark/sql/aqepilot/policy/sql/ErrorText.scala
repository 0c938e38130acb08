package org.apache.spark.sql.aqepilot.policy.sql

/** Spark's error messages, cut down to the sentence that helps the author of a policy. */
private[aqepilot] object ErrorText {
  private val MaxLength = 300

  // Spark advises settings that policies, whose semantics are fixed, do not follow.
  private val Advice =
    """(?s)\s*(If necessary,? )?(you can )?set "?[\w.]*ansi[\w.]*"? to .*?bypass this error\.?""".r
  private val ErrorClass = """^\[[A-Z0-9_.]+\]\s*""".r
  private val Tail = """(?s)(\s*SQLSTATE: \w+|\n== SQL.*|;?\n.*|;line \d+ pos \d+.*)""".r

  def sentence(error: Throwable): String = error match {
    case _: StackOverflowError => "the expression is nested too deeply"
    case _: OutOfMemoryError   => "its values take more memory than the driver has left"
    case _                     =>
      val message = ofMessage(error.getMessage)
      if (message.isEmpty) error.getClass.getSimpleName else message
  }

  def ofMessage(message: String): String = {
    val plain = ErrorClass.replaceFirstIn(Option(message).getOrElse("").trim, "")
    shorten(Tail.replaceAllIn(Advice.replaceAllIn(plain, ""), "").trim, MaxLength)
  }

  def shorten(text: String, maxLength: Int): String =
    if (text.length <= maxLength) text else text.take(maxLength) + "..."
}
