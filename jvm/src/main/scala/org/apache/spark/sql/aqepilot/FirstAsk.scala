package org.apache.spark.sql.aqepilot

import java.io.File
import java.util.jar.JarFile

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guardrails, Health}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow, Fingerprint, Query}
import org.apache.spark.sql.aqepilot.policy.sql.AskBudget
import org.apache.spark.sql.aqepilot.policy.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.record.FactsText
import org.apache.spark.sql.aqepilot.settings.LoggedFacts
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{EqualTo, GenericInternalRow, Literal}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  Join,
  JoinHint,
  LocalRelation,
  Project
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, LongType, StructType}

/** Does once, about nothing, what a first ask does, so that no query waits until the JVM has loaded and linked all that.
  *
  * Nothing comes of it: no record, no line in the log, no count.
  */
final private class FirstAsk(sc: SparkContext, set: PolicySet) {
  import FirstAsk._

  /** @return
    *   what failed, of which the first ask will tell
    */
  def rehearse(): Seq[Throwable] = {
    val live = set.policies.filter(p => p.isLive && Health.isLive(p.point.name))
    val points = live.map(_.point).distinct
    val ofAll = Seq[() => Any](
      () => Fingerprint.of(plan),
      () => Guardrails.of(new SQLConf, sc),
      () => facts.foreach(_.copy()),
      () => link(points.map(_.name).toSet)
    )
    val parts =
      if (live.isEmpty) Nil
      else live.map(p => () => answer(p)) ++ points.map(p => () => written(p)) ++ ofAll
    parts.flatMap { part =>
      if (sc.isStopped) None
      else
        try {
          part()
          None
        } catch { case e: Throwable if !e.isInstanceOf[InterruptedException] => Some(e) }
    }
  }

  private def facts: Seq[InternalRow] = {
    val conf = new SQLConf
    Seq[InternalRow](
      CommonFacts.query.row(Query.of(sc, conf, None)),
      CommonFacts.cluster.row(sc),
      CommonFacts.settings(conf).facts
    )
  }
}

private object FirstAsk {

  private val MostNanos = 100L * 1000 * 1000

  /** Packages whose classes any ask needs. */
  private val Shared = Seq("rule", "decision", "facts", "plans", "record", "spark")
  private val Ours = "org/apache/spark/sql/aqepilot/"

  private def answer(policy: NamedPolicy): Unit = AskBudget.within(MostNanos) {
    policy.compiled.foreach(_.rehearse(nothing(policy.point.facts)))
    policy.whenCompiled.flatMap(_.toOption).foreach { when =>
      when.rehearse(nothing(StructType(policy.point.facts.take(1))))
    }
  }

  private def written(point: DecisionPoint[_]): Unit = {
    val row = nothing(point.facts)
    new FactsRow(point.facts, row).string("query.fingerprint")
    FactsText.of(row, point.facts)(LoggedFacts.Full, identity)
  }

  /** Facts of which none is known. */
  private def nothing(schema: StructType): InternalRow = {
    def value(dataType: DataType): Any = dataType match {
      case struct: StructType => nothing(struct)
      case _                  => null
    }
    new GenericInternalRow(schema.fields.map(f => value(f.dataType)))
  }

  /** A query of the commonest nodes. */
  private def plan = {
    val sides = Seq.fill(2)(LocalRelation(new StructType().add("a", LongType)))
    val equal = EqualTo(sides.head.output.head, sides.last.output.head)
    val joined = Join(sides.head, sides.last, Inner, Some(equal), JoinHint.NONE)
    val kept = Filter(EqualTo(joined.output.head, Literal(1L)), joined)
    Aggregate(kept.output.take(1), kept.output.take(1), Project(kept.output.take(1), kept))
  }

  /** Loads and links the classes that ask at some points, without running what makes their objects: two threads that
    * make objects which need each other would wait for each other for ever.
    */
  private def link(points: Set[String]): Unit = {
    val home = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    val folders = (Shared ++ points.map("points/" + _)).map(Ours + _ + "/")
    if (home.isFile) {
      val jar = new JarFile(home)
      val names =
        try jar.stream.toArray.toSeq.map(_.toString)
        finally jar.close()
      names.filter(n => n.endsWith(".class") && folders.exists(n.startsWith)).foreach { name =>
        val className = name.stripSuffix(".class").replace('/', '.')
        // To look for constructors links a class.
        Try(Class.forName(className, false, getClass.getClassLoader).getDeclaredConstructors)
      }
    }
  }
}
