package org.apache.spark.sql.aqepilot.ui

import scala.util.Try
import scala.xml.Node

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import io.aqepilot.log.AqePilotDecision

/** The partitions of a shuffle, before a decision and after it.
  *
  * @param name
  *   the group of facts: `left`, `right`, `side`, `other`, `shuffle`
  * @param bytes
  *   of each partition; none where the log has left them out
  */
final private[ui] case class ShuffleView(
    name: String,
    bytes: Option[Array[Long]],
    partitions: Option[Long],
    total: Option[Long],
    largest: Long,
    median: Long
) {
  import ShuffleView._

  def before: Seq[Bar] = Seq(
    Bar(s"$name, median", median.toDouble, Html.bytes(median), isWorst = false),
    Bar(s"$name, largest", largest.toDouble, Html.bytes(largest), isWorst = true)
  )

  /** The largest part that a task reads after a split, but for how the map outputs lie; none where nothing is split. */
  def afterSplit(e: AqePilotDecision): Option[Bar] = for {
    sizes <- bytes
    answer <- e.answer.flatMap(parsed)
    parts = splits(answer).orElse(targets(e, answer)(sizes))
    after <- parts.map(_.zip(sizes).map { case (n, size) => size.toDouble / n })
    largestPart = after.foldLeft(0.0)(math.max) if largestPart < largest
  } yield Bar(
    s"$name, largest part",
    largestPart,
    s"about ${Html.bytes(largestPart.toLong)}",
    isWorst = false
  )

  private def splits(answer: JsonNode): Option[Array[Long]] =
    FactsView.longs(answer.get(s"${name}_splits")).map(_.map(math.max(1L, _)))

  /** As Spark's rule takes its settings, those that the policy answers before its own. */
  private def targets(e: AqePilotDecision, answer: JsonNode)(
      sizes: Array[Long]
  ): Option[Array[Long]] = {
    val spark = e.sparkAnswer.flatMap(parsed)
    def setting(field: String) =
      (Option(answer.get(field)) ++ spark.flatMap(s => Option(s.get(field))))
        .find(_.isNumber).map(_.asDouble)
    for {
      factor <- setting("skew_factor")
      threshold <- setting(s"${name}_threshold_bytes")
      target <- setting(s"${name}_target_bytes") if target > 0
    } yield sizes.map { size =>
      val isSkewed = size > threshold && size > factor * median
      if (isSkewed) math.max(1L, math.ceil(size / target).toLong) else 1L
    }
  }
}

private[ui] object ShuffleView {

  private val mapper = new ObjectMapper()
  private val Tasks = """(\d+) tasks?\b""".r.unanchored
  private val Numbered = """^(\d+) partitions$""".r

  private def parsed(text: String): Option[JsonNode] = Try(mapper.readTree(text)).toOption

  /** The sizes that a decision went by and, where it split or merged, those that came of it. */
  def bars(e: AqePilotDecision, finalStrategy: Option[String], facts: FactsView): Seq[Node] = {
    val shuffles = facts.shuffles
    val after =
      if (e.applied && e.point == "skew_join") shuffles.flatMap(_.afterSplit(e)) else Nil
    Bars(shuffles.flatMap(_.before) ++ after ++ perTask(e, finalStrategy, shuffles))
  }

  /** The mean of a task, as Spark alone would have run it and as it ran. */
  private def perTask(
      e: AqePilotDecision,
      finalStrategy: Option[String],
      shuffles: Seq[ShuffleView]
  ): Seq[Bar] = {
    val total = shuffles.flatMap(_.total).sum
    val counted = for {
      spark <- e.sparkStrategy.flatMap(tasks)
      ran <- finalStrategy.flatMap(tasks) if ran != spark && total > 0
    } yield Seq(
      mean("mean of a task, Spark", total, spark),
      mean("mean of a task, ran", total, ran)
    )
    counted.getOrElse(Nil)
  }

  private def mean(label: String, total: Long, tasks: Long) = Bar(
    label,
    total.toDouble / tasks,
    s"${Html.bytes(total / tasks)} in ${Html.count(tasks, "task")}",
    isWorst = false
  )

  private def tasks(strategy: String): Option[Long] = strategy match {
    case Tasks(n)    => Try(n.toLong).toOption.filter(_ > 0)
    case Numbered(n) => Try(n.toLong).toOption.filter(_ > 0)
    case _           => None
  }
}
