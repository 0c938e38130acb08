package org.apache.spark.sql.aqepilot.policy.python

import java.io.File
import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint
import org.apache.spark.sql.aqepilot.policy.{CompiledPolicy, EvaluationFailure, PolicyError}
import org.apache.spark.sql.aqepilot.sql.Rehearsal
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Real processes of the `python3` on the path, and functions that they load. */
trait PythonWorkersFixture extends BeforeAndAfterEach { this: AnyFunSuite =>

  protected val point = DynamicJoinSelectionPoint
  protected val token = "0" * 32
  protected val folder = Files.createTempDirectory("aqepilot-python").toFile
  protected var sc: SparkContext = _
  protected var modules = 0

  override def afterEach(): Unit = {
    if (sc != null) sc.stop()
    sc = null
  }

  /** A driver with these settings, and a deadline that only what hangs misses. */
  protected def start(settings: (String, String)*): Unit = {
    val conf = new SparkConf()
      .setMaster("local[1]")
      .setAppName("workers")
      .set("spark.ui.enabled", "false")
      .set("spark.pyspark.python", "python3")
      .set("spark.aqepilot.ask.deadline", "5s")
    settings.foreach { case (key, value) => conf.set("spark." + key, value) }
    sc = new SparkContext(conf)
  }

  protected def write(name: String, text: String): File = {
    val file = new File(folder, name)
    Files.write(file.toPath, text.stripMargin.getBytes)
    file
  }

  /** The function `choose` of a new module with this text. */
  protected def function(text: String): CompiledPolicy = {
    modules += 1
    val name = s"functions_$modules"
    write(s"$name.py", "import os, signal, sys, time\n" + text.stripMargin)
    loaded(s"python:$name:choose") match {
      case Right(policy) => policy
      case Left(error)   => fail(error.message)
    }
  }

  /** A function that makes a file and hangs, if the query has a description. */
  protected def hanging(made: File): CompiledPolicy = function(
    s"""def choose(facts):
       |    if facts.query.description:
       |        open("${made.getPath}", "w").close()
       |        time.sleep(600)
       |    return "BROADCAST"
       |"""
  )

  protected def loaded(text: String): Either[PolicyError, CompiledPolicy] = {
    SessionFunctions.ofDriver.allow(token, null, text, folder.getPath, "")
    compiled(text)
  }

  /** By the session with a token, or by none. */
  protected def compiled(text: String, token: String = token, waits: Boolean = true) =
    PythonPolicy.compile(text, point, Caller(isSubmitted = false, Some(token), waits))

  protected def workers(token: String = token): PythonWorkers =
    PythonWorkers.of(sc, PythonOwner.Session(token)).get

  protected def status: Seq[(String, String, String)] = workers().status(everyone = true)

  protected def facts(description: String = "", bytes: Seq[Long] = Nil): InternalRow =
    Rehearsal.parse(
      point,
      s"""{"query": {"description": "$description"}, "side": {"is_left": true, "max_bytes": 7,
       | "bytes_by_partition_id": ${bytes.mkString("[", ",", "]")}}}""".stripMargin
    )

  protected def asked(policy: CompiledPolicy, row: InternalRow = facts()): String =
    policy.eval(row) match {
      case Right(answer)                        => String.valueOf(answer)
      case Left(EvaluationFailure(why, reason)) => s"${reason.code}: $why"
    }

  /** As `asked`, once the process that was made anew is there: on a busy machine a deadline may pass before. */
  protected def served(policy: CompiledPolicy, row: InternalRow = facts()): String = {
    var answer = ""
    soon {
      answer = asked(policy, row)
      !answer.startsWith("PYTHON_BUSY")
    }
    answer
  }

  protected def timed[T](body: => T): (T, Double) = {
    val start = System.nanoTime()
    val result = body
    (result, (System.nanoTime() - start) / 1e9)
  }

  protected def pid: Long = status.head._3 match {
    case text => text.split("[ ,]")(1).toLong
  }

  /** Whether a process runs: one that has ended and is not yet waited for does not. */
  protected def isThere(pid: Long): Boolean =
    try !new String(Files.readAllBytes(Paths.get(s"/proc/$pid/stat"))).contains(") Z ")
    catch { case _: java.io.IOException => false }

  protected def kill(pid: Long, signal: Int = 9): Unit =
    new ProcessBuilder("python3", "-c", s"import os; os.kill($pid, $signal)").start().waitFor()

  /** The pipe of a worker's standard error, which its children share. */
  protected def errors: String =
    Files.readSymbolicLink(Paths.get(s"/proc/$pid/fd/2")).toString

  protected def self: String = new File("/proc/self").getCanonicalFile.getName

  /** What a process has open, as the kernel names it; none where that is not to be seen. */
  protected def channels(process: String): Seq[String] =
    Option(new File(s"/proc/$process/fd").listFiles).toSeq.flatten.flatMap { fd =>
      try Some(Files.readSymbolicLink(fd.toPath).toString)
      catch { case _: java.io.IOException => None }
    }

  protected def soon(condition: => Boolean): Unit = {
    val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120)
    while (!condition) {
      assert(System.nanoTime() < end)
      Thread.sleep(10)
    }
  }
}
