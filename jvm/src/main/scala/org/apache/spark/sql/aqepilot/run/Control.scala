package org.apache.spark.sql.aqepilot.run

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{CountDownLatch, ExecutorService, TimeUnit}

import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.policy.PolicySet
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Mode}
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Record, Sessions}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ThreadUtils

import io.aqepilot.log.{AqePilotControl, EventSchema}

/** The control file of one application: `spark.aqepilot.control`. It lowers policies' modes, and never raises them.
  *
  * A thread of its own reads it, at the start and then every `spark.aqepilot.control.refresh`; no query waits for it.
  * While it cannot be read the last good copy holds, and `spark.aqepilot.control.unreachable` as long as there was
  * none. Another thread, which only watches, reports a reading that hangs.
  *
  * @param read
  *   gives the file's text
  */
final class Control(
    val path: String,
    read: () => String,
    refreshMillis: Long,
    unreachable: Mode,
    spark: String,
    changed: Control => Unit
) extends AutoCloseable {
  import Control._

  @volatile private var good: Option[ControlFile] = None
  @volatile private var readAt: Option[Long] = None
  @volatile private var wrong: Option[String] = Some("it has not been read yet")
  @volatile private var inForce: Limits = unread
  // When a reading ended last, whatever came of it.
  @volatile private var endedAt = System.nanoTime()
  @volatile private var threads: Option[ExecutorService] = None
  private val first = new CountDownLatch(1)
  private val hasBegun = new AtomicBoolean
  private val isSilentTold = new AtomicBoolean

  def limits: Limits = inForce

  /** Counts the file's writes; none before the first was read. */
  def version: Option[Long] = good.map(_.version)

  /** Since it was read last, in milliseconds; none if it never was. */
  def age: Option[Long] = readAt.map(millisSince)

  /** Why the newest copy is not known, if so. */
  def problem: Option[String] =
    silentMillis.map { millis =>
      s"its file system does not answer since ${millis / 1000} s" +
        age.fold("; it was never read")(at => s"; it was read last ${at / 1000} s ago")
    }.orElse(wrong)

  /** Since when a reading hangs, if one does. */
  private def silentMillis: Option[Long] =
    Some(millisSince(endedAt)).filter(_ > 3 * refreshMillis + SlowReadMillis)

  private def millisSince(nanos: Long) = (System.nanoTime() - nanos) / 1000000

  def problems: Seq[Problem] = problem.toSeq.map { what =>
    val instead = good.fold(s"${AqePilotConf.ControlUnreachable.key}=${unreachable.name} holds") {
      file => s"version ${file.version} holds"
    }
    Problem(Problem.ControlUnreachable, s"${AqePilotConf.Control.key} ($path): $what; $instead")
  }

  /** Reads it once. Throws nothing: whatever ends a reading, an interrupt included, must not end all later ones. */
  def refresh(): Unit = {
    val before = (wrong, inForce.rules)
    val reading =
      try ControlFile.parse(read()).flatMap(newest)
      catch { case e: Throwable => Left(FailOpen.short(e)) }
      finally Thread.interrupted()
    reading match {
      case Right(file) =>
        good = Some(file)
        readAt = Some(System.nanoTime())
        wrong = None
      case Left(what) => wrong = Some(what)
    }
    endedAt = System.nanoTime()
    val rules = good.map(_.rules.filter(_.holds(System.currentTimeMillis())))
    inForce = rules.fold(unread) { now =>
      if (now == inForce.rules) inForce else new Limits(now, spark)
    }
    first.countDown()
    if (before != ((wrong, inForce.rules)) || isSilentTold.getAndSet(false)) changed(this)
  }

  /** A cache of a file system, or a replica of an object, may give again what was read before. */
  private def newest(file: ControlFile): Either[String, ControlFile] =
    good.filter(file.isBefore) match {
      case Some(newer) =>
        Left(
          s"its version ${file.version} was read after version ${newer.version}: an old copy, of a cache or a " +
            "replica; if it was put back by hand, write it once by `aqepilot control`"
        )
      case None => Right(file)
    }

  /** Tells once that a reading hangs, which its own thread cannot. */
  def watch(): Unit =
    if (silentMillis.isDefined && isSilentTold.compareAndSet(false, true)) changed(this)

  private def follow(by: ExecutorService): Unit = threads = Some(by)

  /** Ends the reading, one that hangs included. */
  override def close(): Unit = threads.foreach(_.shutdownNow())

  /** Waits until it was read for the first time, or could not be. */
  def await(millis: Long): Unit = first.await(millis, TimeUnit.MILLISECONDS)

  private def unread: Limits =
    Limits.of(unreachable, s"$path: ${wrong.getOrElse("")}", spark)
}

object Control {

  /** A session's start waits as long for the first reading. */
  private val FirstReadMillis = 5000L
  private val SlowReadMillis = 30000L

  /** The application's; none where the setting is not submitted. */
  def of(sc: SparkContext): Option[Control] = known.of(sc)

  private val known = new Application.Value[Option[Control]](sc =>
    AqePilotConf.Control.submitted.map(start(sc, _))
  )

  private def start(sc: SparkContext, path: String): Control = {
    val refresh = AqePilotConf.ControlRefresh.inForce
    val control = new Control(
      path,
      () => textOf(path, sc),
      refresh,
      AqePilotConf.ControlUnreachable.inForce,
      sc.version,
      tell(sc, _)
    )
    if (!sc.isStopped) {
      val threads = ThreadUtils.newDaemonThreadPoolScheduledExecutor("aqepilot-control", 2)
      control.follow(threads)
      def always(delay: Long)(work: => Unit) = {
        val run: Runnable = () => if (sc.isStopped) threads.shutdownNow() else kept(work)
        threads.scheduleWithFixedDelay(run, delay, refresh, TimeUnit.MILLISECONDS)
      }
      always(0)(control.refresh())
      always(refresh)(control.watch())
    }
    control
  }

  /** Runs what an executor would never run again if it threw. */
  private def kept(work: => Unit): Unit =
    try
      FailOpen("control", ()) {
        Sessions.forget()
        work
      }
    catch {
      case e: Throwable =>
        Thread.interrupted()
        FailOpen.warnOnce(s"control: ${FailOpen.short(e)}")
    }

  /** When a session starts; the application's first waits for the first reading. */
  def begin(sc: SparkContext): Unit =
    of(sc).filter(_.hasBegun.compareAndSet(false, true)).foreach { control =>
      control.await(FirstReadMillis)
      val record = Record.of(sc)
      record.observe("control.age_ms")(control.age.getOrElse(-1L))
      record.observe("control.rules")(control.limits.rules.size.toLong)
      record.observe("control.unreachable")(if (control.problem.isEmpty) 0L else 1L)
    }

  /** The policies as far as the control file lets them go: none where a fault hides how far. */
  def limited(set: PolicySet, conf: SQLConf): PolicySet =
    FailOpen("control", PolicySet.empty) {
      SparkContext.getActive.flatMap(sc => of(sc).map(_ -> sc)).fold(set) { case (control, sc) =>
        control.limits.of(set, Runs.jobs(conf, sc))
      }
    }

  private def tell(sc: SparkContext, control: Control): Unit = if (!sc.isStopped) {
    val rules = control.limits.rules.map(_.toString)
    // Each time: an outage may have the message of an earlier one.
    control.problems.foreach(FailOpen.arisen)
    FailOpen.info(
      s"control file ${control.path}, version ${control.version.getOrElse("unknown")}: " +
        (if (rules.isEmpty) "no rule" else rules.mkString("; "))
    )
    Record.of(sc).control(
      AqePilotControl(
        EventSchema.Version,
        System.currentTimeMillis(),
        control.path,
        control.version,
        rules,
        control.problem,
        control.age
      )
    )
  }

  private def textOf(path: String, sc: SparkContext): String = {
    val file = new Path(path)
    val in = file.getFileSystem(sc.hadoopConfiguration).open(file)
    try {
      val text = new ByteArrayOutputStream
      val buffer = new Array[Byte](8192)
      var n = in.read(buffer)
      while (n >= 0 && text.size <= ControlFile.MaxBytes) {
        text.write(buffer, 0, n)
        n = in.read(buffer)
      }
      require(text.size <= ControlFile.MaxBytes, s"it has more than ${ControlFile.MaxBytes} bytes")
      new String(text.toByteArray, UTF_8)
    } finally in.close()
  }
}
