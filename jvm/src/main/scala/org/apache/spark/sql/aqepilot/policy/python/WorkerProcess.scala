package org.apache.spark.sql.aqepilot.policy.python

import java.io.{BufferedReader, EOFException, IOException, InputStream, InputStreamReader}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.locks.LockSupport
import java.util.concurrent.{ConcurrentHashMap, Executor, TimeUnit, TimeoutException}

import com.fasterxml.jackson.databind.node.MissingNode
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.Sessions

/** A Python process, spoken to over its standard input and output, which nobody else holds. Used by one thread at a
  * time, but for [[kill]]. That thread is never held longer than it says, not even by a process that cannot be ended.
  */
final class WorkerProcess private (process: Process, name: String) extends Logging {
  import WorkerProcess._

  private val from = process.getInputStream
  @volatile private var isKilled = false

  /** When what is being written should have been taken; as of `System.nanoTime`. */
  @volatile private var writing = Option.empty[Long]

  /** What it says of itself. */
  @volatile private var hello: JsonNode = MissingNode.getInstance

  def pid: Long = hello.path("pid").asLong

  def python: String = hello.path("python").asText

  def isAlive: Boolean = !isKilled && process.isAlive

  /** Waits for it to say who it is.
    *
    * @param end
    *   as of `System.nanoTime`
    * @throws java.io.IOException
    *   it is gone, is late, or has another protocol
    */
  def greet(end: Long): Unit = {
    def failed(why: String) =
      throw new IOException(
        s"the worker process did not start: $why; the driver's log has its output"
      )
    try hello = read(end)
    catch {
      case _: TimeoutException => failed(s"no word in time (${AqePilotConf.PythonLoadTimeout.key})")
      case _: EOFException     => failed(ending)
      case e: IOException      => failed(e.getMessage)
    }
    if (hello.path("protocol").asInt != Protocol)
      failed(s"it speaks protocol ${hello.path("protocol")}, not $Protocol")
  }

  /** Has it make ready for the next request, while that is written down: a process that slept is slow. */
  def wake(end: Long): Unit = watched(end)(quietly(write(Request.Wake)))

  /** @param elsewhere
    *   writes what the pipe may not hold at once
    * @param end
    *   as of `System.nanoTime`; then the process is ended soon
    */
  def send(request: Request, elsewhere: Executor, end: Long): Unit =
    if (request.bytes.length <= hello.path("pipe_bytes").asInt) watched(end)(write(request))
    else elsewhere.execute(() => quietly(write(request)))

  private def write(request: Request): Unit = {
    process.getOutputStream.write(request.bytes)
    process.getOutputStream.flush()
  }

  /** Nobody but another thread can help one that writes to a pipe which is full. */
  private def watched(end: Long)(body: => Unit): Unit = {
    writing = Some(end)
    try body
    finally writing = None
  }

  /** The next answer.
    *
    * @param end
    *   as of `System.nanoTime`
    * @throws java.util.concurrent.TimeoutException
    *   it has not come by then
    */
  def read(end: Long): JsonNode = {
    mapper.readTree(Example)
    val length = ByteBuffer.wrap(exactly(4, end)).getInt
    if (length < 0 || length > MostAnswerBytes)
      throw new IOException(s"an answer of $length bytes: something wrote to the worker's answers")
    mapper.readTree(exactly(length, end))
  }

  /** Looks again and again, each time after a sixteenth of the time that it took so far: a thread in a read can be
    * neither interrupted nor called back, and one that looks without a pause takes the core from those it waits for.
    */
  private def exactly(size: Int, end: Long): Array[Byte] = {
    val bytes = new Array[Byte](size)
    val start = System.nanoTime()
    var done = 0
    while (done < size) {
      val isOver = !isAlive
      val there = from.available()
      if (there > 0) {
        val read = from.read(bytes, done, math.min(there, size - done))
        if (read < 0) throw new EOFException
        done += read
      } else if (isOver) throw new EOFException
      else {
        if (Thread.interrupted()) throw new InterruptedException
        val now = System.nanoTime()
        if (now - end >= 0) throw new TimeoutException
        LockSupport.parkNanos(math.min(MostLookNanos, (now - start) / 16))
      }
    }
    bytes
  }

  /** Ends it and its children at once, whatever they do: also from another thread, whose reads and writes then fail. */
  def kill(): Unit = if (!isKilled) {
    isKilled = true
    running.remove(this)
    process.destroyForcibly()
    // To close a pipe waits for those who write to it, and they for the children that could read it.
    inBackground(s"$name-end") {
      quietly(endGroup())
      quietly(process.getOutputStream.close())
      process.waitFor()
      from.close()
    }
  }

  /** Its children are of its group, and outlive it; the JDK ends no group. */
  private def endGroup(): Unit = {
    val group = hello.path("group").asLong
    if (group > 1) new ProcessBuilder("sh", "-c", s"kill -s KILL -- -$group").start().waitFor()
  }

  /** Ends it and waits for that, for a moment. */
  def end(): Unit = {
    kill()
    try process.waitFor(MostEndMillis, TimeUnit.MILLISECONDS)
    catch { case _: InterruptedException => Thread.currentThread.interrupt() }
  }

  /** How it ended, for a person. */
  def ending: String =
    if (process.isAlive) "its answer cannot be read"
    else {
      val status = process.exitValue
      if (status > 128) s"ended by signal ${status - 128}" else s"exit status $status"
    }

  private def pump(errors: InputStream): Unit = inBackground(s"$name-output") {
    val lines = new BufferedReader(new InputStreamReader(errors, UTF_8))
    val line = new StringBuilder
    var minute = System.nanoTime()
    var logged = 0L

    def tellOfMore(): Unit =
      if (logged > MostLines) logInfo(s"$name: ${logged - MostLines} more lines in a minute")

    def log(): Unit = {
      if (System.nanoTime() - minute > MinuteNanos) {
        tellOfMore()
        minute = System.nanoTime()
        logged = 0
      }
      logged += 1
      if (logged <= MostLines) logInfo(s"$name: $line")
      line.clear()
    }

    try {
      var next = lines.read()
      while (next >= 0) {
        if (next != '\n') line.append(if (Character.isISOControl(next)) ' ' else next.toChar)
        if (next == '\n' || line.length >= MostLineChars) log()
        next = lines.read()
      }
      if (line.nonEmpty) log()
    } finally tellOfMore() // what is still to be read is lost when the worker is ended
  }

  private def inBackground(what: String)(body: => Unit): Unit = {
    val thread = new Thread(what) {
      override def run(): Unit = {
        Sessions.forget()
        quietly(body)
      }
    }
    thread.setDaemon(true)
    thread.start()
  }

  private def quietly(body: => Unit): Unit =
    try body
    catch { case _: IOException => }
}

object WorkerProcess {
  private val Protocol = 1
  private val MostAnswerBytes = 16 << 20
  private val MostLineChars = 1000
  private val MostLines = 1000
  private val MinuteNanos = TimeUnit.MINUTES.toNanos(1)
  private val MostEndMillis = 200L
  private val MostLookNanos = TimeUnit.MILLISECONDS.toNanos(5)

  val mapper = new ObjectMapper()

  /** Read while there is nothing to do but wait: code that just ran is in the caches. */
  private val Example = """{"id":1,"answer":"null"}""".getBytes(UTF_8)

  private val Module = "aqepilot_worker"
  // Without the working directory, which Python puts first: what lies there may hide its own modules.
  private val Bootstrap =
    s"import sys; sys.path[0] = sys.argv[1]; import $Module; $Module.main(int(sys.argv[2]))"

  private val running = ConcurrentHashMap.newKeySet[WorkerProcess]()
  private val WatchMillis = 100L

  /** Ends a process that does not read what is written to it. */
  private lazy val watch: Thread = {
    val thread = new Thread("aqepilot-python-watch") {
      override def run(): Unit = {
        Sessions.forget()
        while (true) look()
      }

      private def look(): Unit = {
        Thread.sleep(WatchMillis)
        running.forEach(p => if (p.writing.exists(System.nanoTime() - _ > 0)) p.kill())
      }
    }
    thread.setDaemon(true)
    thread.start()
    thread
  }

  /** A process that has not greeted yet.
    *
    * @param settings
    *   what SQL cannot name: it calls static methods of texts and numbers
    */
  def start(name: String, python: String, settings: WorkerSettings): WorkerProcess = {
    val builder =
      new ProcessBuilder(python, "-c", Bootstrap, home, settings.memory.toString)
    val process = builder.start()
    val worker = new WorkerProcess(process, name)
    worker.pump(process.getErrorStream)
    running.add(worker)
    watch
    worker
  }

  /** The jar, or the folder of classes, that holds the worker's source. */
  private lazy val home: String = {
    val url = getClass.getClassLoader.getResource(s"$Module.py").toString
    java.nio.file.Paths
      .get(new java.net.URI(url.stripPrefix("jar:").stripSuffix(s"$Module.py").stripSuffix("!/")))
      .toString
  }
}
