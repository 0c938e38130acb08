package org.apache.spark.sql.aqepilot.policy.python

import java.nio.file.{Files, Paths}

import org.scalatest.DoNotDiscover
import org.scalatest.funsuite.AnyFunSuite

/** A driver that has no file descriptor left for a while. It runs in a JVM of its own: a class that could not be loaded
  * meanwhile is lost to it for ever, be it Spark's or ScalaTest's.
  */
@DoNotDiscover
class FewFiles extends AnyFunSuite with PythonWorkersFixture {

  def passes(): Unit = {
    start("aqepilot.ask.breaker_failures" -> "100")
    val policy = function("def choose(facts): return 'BROADCAST'")
    assert(asked(policy) === "BROADCAST")
    kill(pid)
    soon(asked(policy) == "BROADCAST")
    loadAll()
    val first = pid
    limited { limit =>
      limit(1)
      assert(Seq.fill(10)(asked(policy)).toSet === Set("BROADCAST"))
      limit(-1)
      kill(first)
      soon(!isThere(first))
      limit(1)
      val missed = Seq.fill(2)(asked(policy))
      limit(-1)
      assert(missed.forall(_.startsWith("PYTHON_NO_WORKER: ")), missed)
      soon(asked(policy) == "BROADCAST")
    }
  }

  /** Our classes come from a folder here, where each takes a file to open, and from one open jar else. */
  private def loadAll(): Unit = {
    val folder =
      Paths.get(classOf[PythonWorker].getProtectionDomain.getCodeSource.getLocation.toURI)
    val files = Files.walk(folder)
    try
      files.filter(_.toString.endsWith(".class")).forEach { file =>
        val name = folder.relativize(file).toString.stripSuffix(".class").replace('/', '.')
        Class.forName(name, false, getClass.getClassLoader)
      }
    finally files.close()
  }

  /** Sets how many files this process may have open; -1 for as many as before. By a process that runs already, as
    * none can be started without files to open.
    */
  private def limited(body: (Int => Unit) => Unit): Unit = {
    val script =
      s"""import resource as r, sys
         |before = r.prlimit($self, r.RLIMIT_NOFILE)
         |for line in sys.stdin:
         |    soft = int(line)
         |    r.prlimit($self, r.RLIMIT_NOFILE, before if soft < 0 else (soft, before[1]))
         |    print("done", flush=True)
         |""".stripMargin
    val process = new ProcessBuilder("python3", "-c", script).start()
    val answers = scala.io.Source.fromInputStream(process.getInputStream).getLines()
    def limit(soft: Int): Unit = {
      process.getOutputStream.write(s"$soft\n".getBytes)
      process.getOutputStream.flush()
      assert(answers.next() === "done")
    }
    limit(-1)
    try body(limit)
    finally {
      limit(-1)
      process.destroy()
    }
  }
}

object FewFiles {

  /** Writes to a file, which is named, what came of it: `passed` or a fault. */
  def main(args: Array[String]): Unit = {
    val outcome =
      try {
        new FewFiles().passes()
        "passed"
      } catch { case e: Throwable => e.toString }
    Files.write(Paths.get(args(0)), outcome.getBytes)
    Runtime.getRuntime.halt(0)
  }
}
