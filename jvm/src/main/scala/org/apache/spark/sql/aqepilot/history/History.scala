package org.apache.spark.sql.aqepilot.history

import java.lang.{Long => JLong}
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, ExecutorService, TimeUnit}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Sessions}
import org.apache.spark.util.ThreadUtils

import io.aqepilot.log.AqePilotQueryClosed

/** What one query sees of history: the same from its first decision to its last, whatever is read meanwhile.
  *
  * @param now
  *   when it was first asked about, milliseconds since 1970
  */
final class Past private[history] (pack: Pack, own: Option[OwnRuns], val now: Long) {

  private val known = new ConcurrentHashMap[(Long, Long, String), Option[Remembered]]

  /** Whether it knows nothing at all: then nobody has to make a signature. */
  val isEmpty: Boolean = pack.signatures == 0 && own.forall(_.signatures == 0)

  /** Of the same sub-plan, else of its shape; none where neither was ever seen.
    *
    * @param kind
    *   one of [[Kind]]
    */
  def find(same: Long, shape: Long, kind: String): Option[Remembered] = {
    val key = (same, shape, kind)
    val before = known.get(key)
    if (before != null) before
    else {
      val remembered = of(same, shape, kind)
      Option(known.putIfAbsent(key, remembered)).getOrElse(remembered)
    }
  }

  private def of(same: Long, shape: Long, kind: String): Option[Remembered] = {
    val packed = pack.find(same, shape, kind, now)
    packed match {
      case Some(Withheld(_)) => packed
      case _                 =>
        val newer = own.flatMap(_.find(same, shape, kind))
        newer.filter(_.runs >= Past.Enough || packed.isEmpty).map(Seen(_)).orElse(packed)
    }
  }
}

private object Past {

  /** From so many runs of its own on, a driver goes by these instead of the pack's. */
  val Enough = 2
}

/** What past runs measured, for the policies of one application: the pack of `spark.aqepilot.history`, and its own
  * queries with `spark.aqepilot.history.own`.
  *
  * A thread of its own reads the pack, at the start and again when the file has changed; no query waits for it.
  * Where a file cannot be read the pack that was read last stays.
  */
final class History private[history] (
    val sc: SparkContext,
    val path: Option[String],
    status: String => FileStatus,
    read: FileStatus => Pack,
    own: Option[OwnRuns]
) extends AutoCloseable {
  import History._

  @volatile private var pack = Pack.empty
  @volatile private var wrong: Option[String] = None
  private var version: Option[(Long, Long)] = None
  @volatile private var threads: Option[ExecutorService] = None
  private val first = new CountDownLatch(1)
  private val isAwaited = new AtomicBoolean

  /** As a query that begins now sees it. */
  def past: Past = new Past(pack, own, System.currentTimeMillis())

  /** Adds what a query of this application measured, if that is to be remembered. */
  def learn(closed: AqePilotQueryClosed): Unit = if (own.isDefined) closed.subPlans.foreach { s =>
    val run = MeasuredRun(
      closed.time,
      s.inputBytes,
      s.rows,
      s.bytes,
      s.shuffleBytes,
      s.partitions.map(_.toLong),
      s.maxPartitionBytes,
      s.medianPartitionBytes,
      s.inputRows,
      s.taskMillis,
      s.readBytes,
      s.readRows,
      s.spilledBytes,
      s.peakMemoryBytes,
      s.failures.map(_.toLong)
    )
    def form(digits: String) = JLong.parseUnsignedLong(digits, 16)
    add(form(s.same), form(s.shape), s.kind, run)
  }

  private[history] def add(same: Long, shape: Long, kind: String, run: MeasuredRun): Unit =
    own.foreach(_.add(same, shape, kind, run))

  /** Signatures of the pack, of either form. */
  def signatures: Int = pack.signatures

  /** Signatures of the application's own queries; none where they are not remembered. */
  def ownSignatures: Option[Int] = own.map(_.signatures)

  /** Since the newest run of the pack, milliseconds; none without one. */
  def age: Option[Long] = pack.newest.map(System.currentTimeMillis() - _)

  /** Those of the pack that hold now. */
  def held: Seq[Held] = pack.held.filter(_.until > System.currentTimeMillis())

  /** Why the newest pack is not known, if so. */
  def problem: Option[String] = wrong

  def problems: Seq[Problem] = for (file <- path.toSeq; what <- wrong) yield {
    val instead =
      if (pack.signatures == 0) "there is no history"
      else s"the ${pack.signatures} signatures that were read before hold"
    Problem(Problem.HistoryUnreadable, s"${AqePilotConf.History.key} ($file): $what; $instead")
  }

  /** Reads the pack, where its file has changed. Throws nothing. */
  private[history] def refresh(): Unit = path.foreach { file =>
    val (before, signaturesBefore) = (wrong, pack.signatures)
    try {
      val newest = status(file)
      val now = (newest.getModificationTime, newest.getLen)
      if (!version.contains(now)) {
        pack = read(newest)
        version = Some(now)
      }
      wrong = None
    } catch {
      case e: NotAPack  => wrong = Some(e.getMessage)
      case e: Throwable => wrong = Some(FailOpen.short(e))
    } finally Thread.interrupted()
    first.countDown()
    if (wrong != before) problems.foreach(FailOpen.arisen)
    if (wrong.isEmpty && pack.signatures != signaturesBefore)
      FailOpen.info(s"history $file: ${pack.signatures} signatures, ${held.size} of them held")
  }

  /** Waits until it was read for the first time, or could not be; once in an application, and no longer than that. */
  private def await(): Unit =
    if (path.isDefined && isAwaited.compareAndSet(false, true))
      first.await(FirstReadMillis, TimeUnit.MILLISECONDS)

  private def follow(by: ExecutorService): Unit = threads = Some(by)

  /** Ends the reading. */
  override def close(): Unit = threads.foreach(_.shutdownNow())
}

object History {

  /** The application's first session waits as long for the first reading. */
  private val FirstReadMillis = 5000L

  /** The application's; none where no setting asks for it. */
  def of(sc: SparkContext): Option[History] = known.of(sc)

  /** That of the running application. */
  def active: Option[History] = known.ofActive.flatten

  private val known = new Application.Value[Option[History]](sc => {
    val own = if (AqePilotConf.HistoryOwn.inForce) Some(new OwnRuns) else None
    val path = AqePilotConf.History.submitted
    if (path.isEmpty && own.isEmpty) None else Some(start(sc, path, own))
  })

  private def start(sc: SparkContext, path: Option[String], own: Option[OwnRuns]): History = {
    val conf = new Configuration(sc.hadoopConfiguration)
    def status(file: String) = {
      val path = new Path(file)
      path.getFileSystem(conf).getFileStatus(path)
    }
    val history = new History(sc, path, status, PackFile.read(_, conf), own)
    if (path.isDefined && !sc.isStopped) {
      val threads = ThreadUtils.newDaemonThreadPoolScheduledExecutor("aqepilot-history", 1)
      history.follow(threads)
      val refresh: Runnable = () =>
        if (sc.isStopped) threads.shutdownNow()
        else
          FailOpen("history", ()) {
            Sessions.forget()
            history.refresh()
          }
      threads.scheduleWithFixedDelay(
        refresh,
        0,
        AqePilotConf.HistoryRefresh.inForce,
        TimeUnit.MILLISECONDS
      )
    }
    history
  }

  /** When a session starts: begins to read, beside all else that a start does. */
  def begin(sc: SparkContext): Unit = of(sc)

  /** When a session has started. */
  def await(sc: SparkContext): Unit = of(sc).foreach(_.await())
}
