package org.apache.spark.sql.aqepilot.ui

import java.util.Locale

import scala.xml.{Node, Text}

import org.apache.spark.util.Utils

/** Parts of pages. All texts go through `scala.xml`, which escapes them. */
private[ui] object Html {

  private val NameChars = 24
  private val ShortChars = 100
  private val LongChars = 20000
  private val Code = "`([^`]*)`".r
  private val Link = """\[([^\]]*)\]\([^)]*\)""".r

  /** A heading with what is beneath it. */
  def section(title: String, content: Seq[Node]): Seq[Node] =
    <section><h4>{title}</h4>{content}</section>

  /** A sentence of ours, its words of code marked; its links lead to pages of the documentation and are left out. */
  def sentence(markdown: String): Seq[Node] = {
    val text =
      Link.replaceAllIn(markdown, m => java.util.regex.Matcher.quoteReplacement(m.group(1)))
    val plain = Code.split(text).toSeq.map(Text(_))
    val codes = Code.findAllMatchIn(text).map(m => code(m.group(1))).toSeq
    plain.zipAll(codes, Text(""), Text("")).flatMap { case (word, code) => Seq(word, code) }
  }

  /** Code; names and numbers stay in one line. */
  def code(text: String): Node =
    if (text.length <= NameChars) <code class="text-nowrap">{text}</code> else <code>{text}</code>

  /** Code of any length, folded where it is long. */
  def long(text: String): Seq[Node] = folded(text)(code)

  /** Words of any length, folded where they are long. */
  def words(text: String): Seq[Node] = folded(text)(Text(_))

  private def folded(text: String)(show: String => Node): Seq[Node] = {
    val line = text.linesIterator.take(1).mkString
    if (line.length == text.length && text.length <= ShortChars) show(text)
    else {
      // It scrolls, so that a reader without a mouse has to come to it.
      val whole = <pre tabindex="0">{text.take(LongChars)}</pre>
      fold(show(line.take(ShortChars) + "\u2026"), whole)
    }
  }

  /** What opens by a click or the Enter key, by the browser alone. */
  def fold(summary: Seq[Node], content: Seq[Node]): Seq[Node] =
    <details><summary>{summary}</summary>{content}</details>

  /** What may not be known. */
  def orDash(text: Option[String]): Seq[Node] = Text(text.filter(_.nonEmpty).getOrElse("\u2013"))

  def bytes(bytes: Long): String = Utils.bytesToString(bytes)

  def number(n: Long): String = "%,d".formatLocal(Locale.US, n)

  def count(n: Long, one: String): String = if (n == 1) s"1 $one" else s"${number(n)} ${one}s"
}
