package org.apache.spark.sql.vendorforks

import java.io.{File, RandomAccessFile}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.collection.JavaConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{Appender, LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** Runs a small job on one imitated Spark after the other, and prints a line of JSON for each.
  *
  * Arguments: our jar; a file of settings and queries; a folder; the JVM's log of exceptions; what is to run: `list`,
  * or a file of lines that `list` has printed (`-` for the jar as it is).
  */
object VendorForks {

  private val mapper = new ObjectMapper()
  private val sparks = getClass.getClassLoader

  def main(arguments: Array[String]): Unit = {
    val Array(jar, job, folder, exceptions, forks) = arguments
    val references = new References(jar, sparks)
    val runner = new Runner(
      new File(jar),
      mapper.readTree(new File(job)),
      new File(folder),
      exceptions,
      references
    )
    runner.prepare()
    val found =
      if (forks == "plan") plan(runner, needs(new File(jar), references), references)
      else {
        val forksByName = references.all.keys.map(m => s"${m.kind} ${m.text}" -> m).toMap
        scala.io.Source.fromFile(forks, "UTF-8").getLines().map { line =>
          val Array(name, steps) = line.split("\t")
          runner.run(asked(name, forksByName), name, steps.split(",").toSeq)
        }
      }
    found.foreach(line => println("FOUND " + line))
    System.out.flush()
    Runtime.getRuntime.halt(0)
  }

  private def asked(name: String, forks: Map[String, Missing]): Set[Missing] =
    forks.get(name).map(Set(_)).getOrElse {
      val Array(_, member) = name.split(" ", 2)
      val dot = member.lastIndexOf('.')
      Set(Missing("probe", member.take(dot).replace('.', '/'), member.drop(dot + 1), ""))
    }

  /** What there is to run, with its steps; then the jar as it is, and without all that the job does not come to. */
  private def plan(
      runner: Runner,
      needs: Seq[Missing],
      references: References
  ): Iterator[String] = {
    val covered = runner.cover()
    val probed = needs.flatMap(n => references.probed(n.owner, n.name)).toSet
    val forks = needs ++ references.all.keys.toSeq.sortBy(_.text)
    val steps = forks.map(f => f -> runner.reaching(f))
    val idle = steps.collect { case (f, Nil) if !probed(f) && !references.isAbstract(f) => f }.toSet
    val lines = steps.map { case (f, of) =>
      val told = mapper.createObjectNode()
      told.put("fork", s"${f.kind} ${f.text}").put("is_idle", idle(f))
      told.put("steps", (if (of.isEmpty) runner.least else of).mkString(","))
      mapper.writeValueAsString(told)
    }
    Iterator(covered) ++ lines.iterator ++
      Iterator(
        runner.run(Set.empty, "nothing", runner.steps),
        runner.run(idle, "all that the job does not come to", runner.steps)
      )
  }

  /** What `Health` looks for. */
  private def needs(jar: File, references: References): Seq[Missing] = {
    val loader = new Mutation.Loader(jar, references, new Mutation(references, Set.empty, 0), sparks)
    val points = loader.loadClass("org.apache.spark.sql.aqepilot.decision.DecisionPoints$")
    val all = points.getMethod("all").invoke(points.getField("MODULE$").get(null))
    def get(of: Any, name: String): Any = of.getClass.getMethod(name).invoke(of)
    val needs = all.asInstanceOf[Iterable[Any]].flatMap { p =>
      val method = p.getClass.getMethod("needs")
      method.invoke(p).asInstanceOf[Iterable[Any]]
    }
    needs.toSeq.distinct.flatMap { need =>
      val owner = get(need, "className").toString.replace('.', '/')
      get(need, "method").asInstanceOf[Option[String]].map(Missing("probe", owner, _, ""))
    }.distinct
  }
}

/** Keeps the warnings of the driver's log. */
final private class Warnings extends AbstractAppender("vendor-forks", null, null, true, null) {
  val seen = new ConcurrentLinkedQueue[String]()
  override def append(event: LogEvent): Unit =
    if (event.getLevel.isMoreSpecificThan(Level.WARN)) {
      val thrown = Option(event.getThrown).fold("")(t => s" [$t]")
      seen.add(s"${event.getLoggerName}: ${event.getMessage.getFormattedMessage}$thrown")
    }
}

final private class Runner(
    jar: File,
    job: JsonNode,
    folder: File,
    log: String,
    references: References
) {

  private val mapper = new ObjectMapper()
  private val sparks = getClass.getClassLoader
  private val warnings = new Warnings
  private val exceptions = new RandomAccessFile(log, "r")
  private var plain: Map[String, Seq[String]] = Map.empty
  private var schemas: Map[String, StructType] = Map.empty
  private var covered: Map[String, Set[(Missing, String)]] = Map.empty
  private var number = 0
  private def texts(name: String) =
    job.get(name).fields().asScala.map(e => e.getKey -> e.getValue.asText).toSeq

  /** Writes the tables and runs the queries on plain Spark. */
  def prepare(): Unit = {
    warnings.start()
    LogManager.getRootLogger.asInstanceOf[Logger].addAppender(warnings)
    val spark = session(Nil)
    texts("tables").foreach { case (name, text) =>
      val table = spark.sql(text)
      table.write.parquet(new File(folder, name).getPath)
      schemas += name -> table.schema
    }
    views(spark)
    plain = texts("queries").map { case (name, text) => name -> rows(spark, text) }.toMap
    stop()
  }

  private def rows(spark: SparkSession, text: String): Seq[String] = {
    val statements = text.split(";\n").toSeq
    statements.init.foreach(spark.sql(_).collect())
    spark.sql(statements.last).collect().map(_.toString).sorted.toSeq
  }

  private def views(spark: SparkSession): Unit = schemas.foreach { case (name, schema) =>
    spark.read.schema(schema).parquet(new File(folder, name).getPath).createOrReplaceTempView(name)
  }

  private def session(more: Seq[(String, String)]): SparkSession = {
    val builder = SparkSession.builder().master("local[2]").appName("vendor-forks")
    (texts("settings") ++ more).foreach { case (k, v) => builder.config(k, v) }
    builder.getOrCreate()
  }

  private def stop(): Unit = {
    try SparkContext.getActive.foreach(_.stop())
    catch { case NonFatal(_) => }
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    forget()
  }

  /** Spark keeps an extension's settings for the life of the driver: with them the classes that check their values. */
  private def forget(): Unit = {
    val field = ConfigEntry.getClass.getDeclaredFields.find(_.getName.contains("knownConfigs")).get
    field.setAccessible(true)
    val entries = field.get(ConfigEntry).asInstanceOf[java.util.Map[String, ConfigEntry[_]]]
    entries.values.asScala.filter(_.key.startsWith("spark.aqepilot.")).toSeq.foreach { e =>
      SQLConf.unregister(e)
      entries.remove(e.key)
    }
  }

  /** The steps of the job, in their order. The first is to make a session, and the last tell of the rest. */
  val steps: Seq[String] = Seq("session") ++ texts("queries").map(_._1) ++ texts("functions").map(_._1)
  private val always = Set("session", "status", "decisions")

  /** Runs the jar as it is and notes what each step comes to. */
  def cover(): String = {
    val reached = new Reached
    val mutation = new Mutation(references, Set.empty, number, Some(reached))
    run(
      mutation,
      "nothing, and what is come to is noted",
      steps,
      step => {
        Thread.sleep(500) // what is done later, too
        covered += step -> reached.of(Probes.takeHits())
      }
    )
  }

  /** The steps, as few as come to all that the job comes to of this, in our classes that refer to it; none, if none. */
  def reaching(missing: Missing): Seq[String] = {
    val members =
      if (missing.kind == "probe") references.probed(missing.owner, missing.name) else Seq(missing)
    val pairs = members.flatMap { m =>
      references.all(m).map { c =>
        if (m.kind == "class") (Missing("class", c, "", ""), c) else (m, c)
      }
    }.toSet
    var left = pairs.filter(p => covered.values.exists(_.contains(p)))
    if (left.isEmpty && missing.kind != "probe") Nil
    else {
      var chosen = always
      chosen.foreach(s => left --= covered(s))
      while (left.nonEmpty) {
        val best = steps.maxBy(s => covered(s).count(left))
        chosen += best
        left --= covered(best)
      }
      // A session without a query would not show that queries go on.
      if (texts("queries").exists(q => chosen(q._1))) steps.filter(chosen) else least
    }
  }

  val least: Seq[String] = steps.filter(s => always(s) || s == texts("queries").head._1)

  def run(missing: Set[Missing], name: String, steps: Seq[String]): String =
    run(new Mutation(references, missing, number), name, steps, _ => ())

  private def run(
      mutation: Mutation,
      name: String,
      steps: Seq[String],
      after: String => Unit
  ): String = {
    val began = System.nanoTime()
    val told = mapper.createObjectNode()
    told.put("fork", name)
    val loader = new Mutation.Loader(jar, references, mutation, sparks)
    warnings.seen.clear()
    Probes.start(mutation.missing)
    exceptions.seek(exceptions.length())
    val failed = told.putObject("failed")
    val thread = new Thread(() => work(told, failed, steps, after), s"fork-$number")
    thread.setContextClassLoader(loader)
    thread.start()
    thread.join(400000)
    if (thread.isAlive) failed.put("hung", thread.getStackTrace.take(12).mkString(" < "))
    val before = Thread.currentThread().getContextClassLoader
    Thread.currentThread().setContextClassLoader(loader)
    try stop()
    finally Thread.currentThread().setContextClassLoader(before)
    release()
    number += 1
    val said = told.putArray("warnings")
    warnings.seen.asScala
      .map(_.linesIterator.take(1).mkString.take(400)).toSeq.distinct.foreach(said.add)
    val thrown = told.putArray("thrown")
    newExceptions()
      .filter(l => l.contains(Mutation.Gone) || l.contains("AbstractMethodError"))
      .map(_.replaceAll("0x[0-9a-f]+", "").replaceAll("^.*?(java[/.]lang[/.]\\w+).*?: ", "$1: "))
      .map(_.take(300)).toSeq.distinct.take(5).foreach(thrown.add)
    told.put("probed", Probes.wereAsked)
    told.put("millis", (System.nanoTime() - began) / 1000000)
    mapper.writeValueAsString(told)
  }

  private def newExceptions(): Iterator[String] = {
    val lines = new Array[Byte]((exceptions.length() - exceptions.getFilePointer).toInt)
    exceptions.readFully(lines)
    new String(lines, "UTF-8").linesIterator
  }

  private def work(
      told: ObjectNode,
      failed: ObjectNode,
      steps: Seq[String],
      after: String => Unit
  ): Unit =
    try {
      val times = told.putObject("times")
      var last = System.nanoTime()
      def done(step: String): Unit = {
        val now = System.nanoTime()
        times.put(step, (now - last) / 1000000)
        after(step)
        last = System.nanoTime()
      }
      val extension = "spark.sql.extensions" -> "io.aqepilot.AqePilotExtension"
      val spark = session(extension +: texts("policies"))
      views(spark)
      done("session")
      texts("queries").filter(q => steps.contains(q._1)).foreach { case (name, text) =>
        try if (rows(spark, text) != plain(name)) failed.put(name, "other rows")
        catch { case e: Throwable => failed.put(name, short(e)) }
        done(name)
      }
      // What became of the queries is read on the thread of their events.
      spark.sparkContext.listenerBus.waitUntilEmpty()
      val said = told.putObject("said")
      texts("functions").filter(f => steps.contains(f._1)).foreach { case (name, text) =>
        val lines = said.putArray(name)
        try spark.sql(text).collect().foreach(r => lines.add(r.mkString("|").take(400)))
        catch { case e: Throwable => lines.add("FAILED " + short(e)) }
        done(name)
      }
    } catch { case e: Throwable => failed.put("session", short(e)) }

  private def short(e: Throwable): String = {
    val causes = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(6).toSeq
    causes.map(c => String.valueOf(c).linesIterator.take(1).mkString.take(250)).mkString(" <- ") +
      " AT " + causes.last.getStackTrace.take(8).mkString(" < ")
  }

  /** What aqepilot gave to Spark's own class loader would keep all its classes. */
  private def release(): Unit =
    try {
      val given = Class.forName(s"${Mutation.SharedName}_$number$$Factory$$", false, sparks)
      given.getField("MODULE$").get(null)
        .asInstanceOf[java.util.concurrent.atomic.AtomicReference[Any]].set(null)
    } catch { case _: ClassNotFoundException => }
}
