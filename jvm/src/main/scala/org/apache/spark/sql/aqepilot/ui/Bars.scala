package org.apache.spark.sql.aqepilot.ui

import scala.xml.Node

/** A figure beside its bar.
  *
  * @param isWorst
  *   drawn in the colour of what a query waits for
  */
final private[ui] case class Bar(label: String, value: Double, text: String, isWorst: Boolean)

/** Figures of one kind, drawn to one scale. */
private[ui] object Bars {

  private val Width = 160
  private val Height = 10

  def apply(bars: Seq[Bar]): Seq[Node] = {
    val most = bars.map(_.value).foldLeft(0.0)(math.max)
    if (most <= 0) Nil
    else <div class="aqepilot-bars">{bars.flatMap(row(_, most))}</div>
  }

  private def row(bar: Bar, most: Double): Seq[Node] = {
    val width = math.max(1, math.round(bar.value / most * Width)).toString
    val colour = if (bar.isWorst) "#d9730d" else "#2f7ed8"
    Seq(
      <span>{bar.label}</span>,
      <svg width={Width.toString} height={Height.toString} aria-hidden="true">
        <rect width={width} height={Height.toString} fill={colour}/>
      </svg>,
      <span>{bar.text}</span>
    )
  }

  /** For the pages' own elements. The colour of code is the text's: Spark's is too light on a grey row. */
  val style: Node = <style>{
    ".aqepilot-bars { display: inline-grid; grid-template-columns: max-content max-content max-content; " +
      "column-gap: 0.5em; align-items: center; white-space: nowrap; } " +
      ".aqepilot table td { vertical-align: top; max-width: 24em; overflow-wrap: break-word; } " +
      ".aqepilot table td:last-child { max-width: none; } " +
      "@media (max-width: 75em) { .aqepilot table td { overflow-wrap: anywhere; } } " +
      ".aqepilot code { color: inherit; overflow-wrap: anywhere; white-space: normal; } " +
      ".aqepilot summary { cursor: pointer; } " +
      ".aqepilot summary code { word-break: break-all; } " +
      ".aqepilot details pre { max-height: 20em; overflow: auto; } " +
      ".aqepilot section { margin-bottom: 1.5em; }"
  }</style>
}
