package org.apache.spark.sql.aqepilot.python

import java.io.{
  BufferedReader,
  DataInputStream,
  DataOutputStream,
  EOFException,
  IOException,
  InputStream,
  InputStreamReader
}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.MissingNode
import org.apache.spark.internal.Logging

/** A frame to the worker: a JSON object, and the bytes of its long arrays. */
final class Frame(json: Array[Byte], blobBytes: Int, blob: ByteBuffer => Unit) {

  /** Length, the JSON's length, the JSON, the blob. */
  def bytes: Array[Byte] = {
    val length = 4 + json.length + blobBytes
    val buffer = ByteBuffer.allocate(4 + length).putInt(length).putInt(json.length).put(json)
    blob(buffer)
    buffer.array
  }
}

/** A Python process, spoken to over its standard input and output, which nobody else holds. Used by one thread,
  * but for [[kill]].
  */
final class WorkerProcess private (process: Process, name: String) extends Logging {
  import WorkerProcess._

  private val to = new DataOutputStream(process.getOutputStream)
  private val from = new DataInputStream(new java.io.BufferedInputStream(process.getInputStream))

  /** What it says of itself. */
  @volatile private var hello: JsonNode = MissingNode.getInstance

  def pid: Long = hello.path("pid").asLong

  def python: String = hello.path("python").asText

  def isAlive: Boolean = process.isAlive

  /** Waits for it to say who it is.
    *
    * @throws java.io.IOException
    *   it is gone, or speaks another protocol; then it is ended
    */
  def greet(): Unit =
    try {
      hello = read()
      if (hello.path("protocol").asInt != Protocol)
        throw new IOException(s"it speaks protocol ${hello.path("protocol")}, not $Protocol")
    } catch {
      case e: IOException =>
        end()
        val why = if (e.isInstanceOf[EOFException]) ending else e.getMessage
        throw new IOException(
          s"the worker process did not start: $why; the driver's log has its output",
          e
        )
    }

  def send(frame: Frame): Unit = {
    to.write(frame.bytes)
    to.flush()
  }

  /** The next answer. */
  def read(): JsonNode = {
    val length = from.readInt()
    if (length < 0 || length > MostAnswerBytes)
      throw new IOException(s"an answer of $length bytes: something wrote to the worker's answers")
    val answer = new Array[Byte](length)
    from.readFully(answer)
    mapper.readTree(answer)
  }

  /** Ends it at once, whatever it does: also from another thread, whose reads and writes then fail. */
  def kill(): Unit = {
    process.destroyForcibly()
    quietly(process.getOutputStream.close())
  }

  /** Ends it and waits for that. */
  def end(): Unit = {
    kill()
    quietly(process.waitFor(5, java.util.concurrent.TimeUnit.SECONDS))
    quietly(process.getInputStream.close())
  }

  /** How it ended, for a person. */
  def ending: String =
    if (process.isAlive) "its answer cannot be read"
    else {
      val status = process.exitValue
      if (status > 128) s"ended by signal ${status - 128}" else s"exit status $status"
    }

  private def pump(errors: InputStream): Unit = {
    val thread = new Thread(s"$name-output") {
      override def run(): Unit = quietly {
        val lines = new BufferedReader(new InputStreamReader(errors, UTF_8))
        val line = new StringBuilder
        var next = lines.read()
        while (next >= 0) {
          if (next != '\n') line.append(next.toChar)
          if (next == '\n' || line.length >= MostLineChars) {
            logInfo(s"$name: $line")
            line.clear()
          }
          next = lines.read()
        }
        if (line.nonEmpty) logInfo(s"$name: $line")
      }
    }
    thread.setDaemon(true)
    thread.start()
  }

  private def quietly(body: => Unit): Unit =
    try body
    catch { case _: IOException | _: InterruptedException => }
}

object WorkerProcess {
  private val Protocol = 1
  private val MostAnswerBytes = 16 << 20
  private val MostLineChars = 1000

  val mapper = new ObjectMapper()

  private val Module = "aqepilot_worker"
  // Without the working directory, which Python puts first: what lies there may hide its own modules.
  private val Bootstrap =
    s"import sys; sys.path[0] = sys.argv[1]; import $Module; $Module.main(int(sys.argv[2]))"

  /** A process that has not greeted yet. */
  def start(name: String, python: String, memoryBytes: Long): WorkerProcess = {
    val builder =
      new ProcessBuilder(python, "-c", Bootstrap, home, memoryBytes.toString)
    val process = builder.start()
    val worker = new WorkerProcess(process, name)
    worker.pump(process.getErrorStream)
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
