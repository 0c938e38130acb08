package org.apache.spark.sql.aqepilot.ui

import scala.xml.{Node, Text}

import org.apache.spark.sql.aqepilot.spark.Servlets

/** The decisions of a query: what Spark knew, what the policy said, what Spark alone would have done, what came of it. */
final private[ui] class DecisionsTable(record: StoredRecord) {
  import Html._

  def nodes(all: Seq[KeptDecision], path: String, request: Servlets.Request): Seq[Node] =
    new Table("decisions", all, columns :+ knew, false, path, request).nodes

  /** The first of them, as a panel of another page has them. */
  def panel(all: Seq[KeptDecision]): Seq[Node] = {
    val rows = all.map(d => <tr>{columns.map(c => <td>{c.cell(d)}</td>)}</tr>)
    <table class="table table-bordered table-sm table-striped">
      <thead><tr>{columns.map(c => <th>{c.name}</th>)}</tr></thead>
      <tbody>{rows}</tbody>
    </table>
  }

  private val columns: Seq[Column[KeptDecision]] = Seq(
    Column("Decision", Some(Ordering.by((d: KeptDecision) => d.id)), subject),
    Column("Answer", None, answer),
    Column("Spark alone", None, spark),
    Column("What came of it", Some(Ordering.by(came)), outcome)
  )

  private def knew: Column[KeptDecision] = Column("What Spark knew", None, facts)

  private def came(d: KeptDecision): (String, String) =
    (d.fate.fold("")(_.fate), d.decision.reason)

  private def subject(d: KeptDecision): Seq[Node] = {
    val e = d.decision
    <div><strong>{e.subject.getOrElse(s"decision ${d.id}")}</strong></div>
    <div>{code(e.point)}</div> ++ e.tables.map(t => <div>{t}</div>)
  }

  private def answer(d: KeptDecision): Seq[Node] = {
    val e = d.decision
    val who = e.policy.map { p =>
      s"$p${e.mode.fold("")(m => s", $m")}${e.revision.fold("")(r => s", revision $r")}"
    }
    e.answer.fold(Seq[Node](<div>Leave it to Spark</div>))(a => <div>{long(a)}</div>) ++
      who.map(w => <div>{w}</div>)
  }

  private def spark(d: KeptDecision): Seq[Node] =
    d.decision.sparkStrategy.map(s => <div>{s}</div>).toSeq ++
      d.decision.sparkAnswer.map(a => <div>{long(a)}</div>)

  private def outcome(d: KeptDecision): Seq[Node] = {
    val e = d.decision
    val fate = d.fate.map { f =>
      <div><strong>{f.fate}</strong>{Outcome.ofFate(f.fate).fold("")(m => s": $m")}</div> ++
        f.finalStrategy.map(s => <div>{s"Ran: $s"}</div>)
    }
    fate.getOrElse(Nil) ++
      <div>{code(e.reason)}{Outcome.ofReason(e.reason).fold("")(m => s": $m")}</div> ++
      e.detail.map(text => <div>{words(text)}</div>) ++
      Outcome.needed(e).map(text => <div><em>What you can do: </em>{sentence(text)}</div>)
  }

  private def facts(d: KeptDecision): Seq[Node] =
    record.facts(d).map(new FactsView(_)) match {
      case None       => Text("The log has no facts of it.")
      case Some(view) =>
        view.main ++ ShuffleView.bars(d.decision, d.fate.flatMap(_.finalStrategy), view) ++ view.all
    }
}
