package org.apache.spark.sql.aqepilot.python

import java.io.File
import java.nio.file.{Files, Paths}
import java.util.concurrent.{Callable, CountDownLatch, Executors, TimeUnit}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.aqepilot.Rehearsal
import org.apache.spark.sql.catalyst.InternalRow
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.decision.DynamicJoinSelectionPoint
import io.aqepilot.policy.{CompiledPolicy, EvaluationFailure, PolicyError}

/** Against real processes of the `python3` on the path. */
class PythonWorkersSuite extends AnyFunSuite with BeforeAndAfterEach {

  private val point = DynamicJoinSelectionPoint
  private val token = "0" * 32
  private val folder = Files.createTempDirectory("aqepilot-python").toFile
  private var sc: SparkContext = _
  private var modules = 0

  override def afterEach(): Unit = {
    if (sc != null) sc.stop()
    sc = null
  }

  /** A driver with these settings, and a deadline that only what hangs misses. */
  private def start(settings: (String, String)*): Unit = {
    val conf = new SparkConf()
      .setMaster("local[1]")
      .setAppName("workers")
      .set("spark.ui.enabled", "false")
      .set("spark.pyspark.python", "python3")
      .set("spark.aqepilot.ask.deadline", "5s")
    settings.foreach { case (key, value) => conf.set("spark." + key, value) }
    sc = new SparkContext(conf)
  }

  private def write(name: String, text: String): File = {
    val file = new File(folder, name)
    Files.write(file.toPath, text.stripMargin.getBytes)
    file
  }

  /** The function `choose` of a new module with this text. */
  private def function(text: String): CompiledPolicy = {
    modules += 1
    val name = s"functions_$modules"
    write(s"$name.py", "import os, signal, sys, time\n" + text.stripMargin)
    loaded(s"python:$name:choose") match {
      case Right(policy) => policy
      case Left(error)   => fail(error.message)
    }
  }

  /** A function that makes a file and hangs, if the query has a description. */
  private def hanging(made: File): CompiledPolicy = function(
    s"""def choose(facts):
       |    if facts.query.description:
       |        open("${made.getPath}", "w").close()
       |        time.sleep(600)
       |    return "BROADCAST"
       |"""
  )

  private def loaded(text: String): Either[PolicyError, CompiledPolicy] = {
    SessionFunctions.allow(token, null, text, folder.getPath, "")
    compiled(text)
  }

  /** By the session with a token, or by none. */
  private def compiled(text: String, token: String = token, waits: Boolean = true) =
    PythonPolicy.compile(text, point, Caller(isSubmitted = false, Some(token), waits))

  private def workers(token: String = token): PythonWorkers =
    PythonWorkers.of(sc, PythonOwner.Session(token)).get

  private def status: Seq[(String, String, String)] = workers().status(everyone = true)

  private def facts(description: String = "", bytes: Seq[Long] = Nil): InternalRow =
    Rehearsal.parse(
      point,
      s"""{"query": {"description": "$description"}, "side": {"is_left": true, "max_bytes": 7,
       | "bytes_by_partition_id": ${bytes.mkString("[", ",", "]")}}}""".stripMargin
    )

  private def asked(policy: CompiledPolicy, row: InternalRow = facts()): String =
    policy.eval(row) match {
      case Right(answer)                        => String.valueOf(answer)
      case Left(EvaluationFailure(why, reason)) => s"${reason.code}: $why"
    }

  private def timed[T](body: => T): (T, Double) = {
    val start = System.nanoTime()
    val result = body
    (result, (System.nanoTime() - start) / 1e9)
  }

  private def pid: Long = status.head._3 match {
    case said => said.split("[ ,]")(1).toLong
  }

  /** Whether a process runs: one that has ended and is not yet waited for does not. */
  private def isThere(pid: Long): Boolean =
    try !new String(Files.readAllBytes(Paths.get(s"/proc/$pid/stat"))).contains(") Z ")
    catch { case _: java.io.IOException => false }

  private def kill(pid: Long, signal: Int = 9): Unit =
    new ProcessBuilder("python3", "-c", s"import os; os.kill($pid, $signal)").start().waitFor()

  /** The pipe of a worker's standard error, which its children share. */
  private def errors: String =
    Files.readSymbolicLink(Paths.get(s"/proc/$pid/fd/2")).toString

  private def self: String = new File("/proc/self").getCanonicalFile.getName

  /** What a process has open, as the kernel names it; none where that is not to be seen. */
  private def channels(process: String): Seq[String] =
    Option(new File(s"/proc/$process/fd").listFiles).toSeq.flatten.flatMap { fd =>
      try Some(Files.readSymbolicLink(fd.toPath).toString)
      catch { case _: java.io.IOException => None }
    }

  private def soon(condition: => Boolean): Unit = {
    val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30)
    while (!condition) {
      assert(System.nanoTime() < end)
      Thread.sleep(10)
    }
  }

  test("a function reads the facts, arrays of longs as a buffer, and gives the decision") {
    start()
    val policy = function(
      """def choose(facts):
        |    sizes = facts.side.bytes_by_partition_id
        |    assert isinstance(sizes, memoryview) and sizes.format == "q" and sizes.readonly
        |    assert facts.side.is_left is True and facts.side.row_count is None
        |    return f"{facts.side.max_bytes} {list(sizes)} {facts.query.description}"
        |"""
    )
    assert(asked(policy, facts("ä\\\"b", Seq(1, -2, 1L << 60))) ===
      "7 [1, -2, 1152921504606846976] ä\"b")
    assert(asked(policy) === "7 [] ")
    assert(asked(function("def choose(facts): return None")) === "null")
  }

  test("a function is called once for each ask, though its worker makes ready before") {
    start()
    val policy = function(
      """calls = 0
        |def choose(facts):
        |    global calls
        |    calls += 1
        |    return str(calls)
        |"""
    )
    assert((1 to 20).map(_ => asked(policy)) === (1 to 20).map(_.toString))
  }

  test("what a module loaded is left out of Python's collections of garbage during asks") {
    start()
    val policy = function(
      """import gc
        |history = [[i] for i in range(100_000)]
        |def choose(facts):
        |    gc.collect()
        |    return str(len(gc.get_objects()) < 50_000)
        |"""
    )
    assert(asked(policy) === "True")
  }

  test("what a function prints, by whatever way, does not disturb its answers") {
    start()
    val policy = function(
      """def choose(facts):
        |    print("x" * 100000)
        |    os.write(1, b"raw output")
        |    os.system("echo from a child")
        |    sys.stdout.flush()
        |    return "BROADCAST"
        |"""
    )
    assert(Seq.fill(3)(asked(policy)).toSet === Set("BROADCAST"))
  }

  test("an exception is told with the function's line, and the next ask is served") {
    start()
    val policy = function(
      """def choose(facts):
        |    if facts.query.description: raise KeyError(facts.query.description)
        |    return "BROADCAST"
        |"""
    )
    val told = asked(policy, facts("sales"))
    assert(told.startsWith("PYTHON_RAISED: KeyError: 'sales' (File ") && told.contains("line 3"))
    val before = pid
    assert(asked(policy) === "BROADCAST" && pid === before)
    assert(
      asked(function("def choose(facts): sys.exit(3)")).startsWith("PYTHON_RAISED: SystemExit")
    )
  }

  Seq(
    "sleeps" -> "time.sleep(600)",
    "holds the interpreter" -> "\n        while True: pass",
    "stops its process" -> "os.kill(os.getpid(), signal.SIGSTOP)",
    "ignores signals" ->
      "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(600)"
  ).foreach { case (what, body) =>
    test(
      s"a function that $what misses the deadline, its process is ended and the next ask served"
    ) {
      start("aqepilot.ask.deadline" -> "1s")
      val policy = function(
        s"""def choose(facts):
           |    if facts.query.description: $body
           |    return "BROADCAST"
           |"""
      )
      assert(asked(policy) === "BROADCAST")
      val first = pid
      val (answer, seconds) = timed(asked(policy, facts("hang")))
      assert(answer === "PYTHON_DEADLINE: no answer within 1000 ms")
      assert(seconds >= 1 && seconds < 2.7)
      assert(asked(policy) === "BROADCAST")
      assert(pid !== first)
      soon(!isThere(first))
    }
  }

  Seq(
    "os._exit(3)" -> "exit status 3",
    "os.kill(os.getpid(), signal.SIGKILL)" -> "signal 9"
  ).foreach {
    case (body, how) =>
      test(s"a process that ends by $body is told, and the next ask served") {
        start()
        val policy = function(
          s"""def choose(facts):
             |    if facts.query.description: $body
             |    return "BROADCAST"
             |"""
        )
        val answer = asked(policy, facts("end"))
        assert(answer.startsWith("PYTHON_DIED: ") && answer.contains(how))
        assert(asked(policy) === "BROADCAST")
      }
  }

  test("a process that is killed between two asks is made anew") {
    start()
    val policy = function("def choose(facts): return 'BROADCAST'")
    assert(asked(policy) === "BROADCAST")
    val first = pid
    kill(first)
    soon(!isThere(first))
    assert(asked(policy) === "BROADCAST")
  }

  Seq(10, 1000000).foreach { partitions =>
    test(s"a process that does not read $partitions numbers is waited for no longer than that") {
      start("aqepilot.ask.deadline" -> "1s")
      val policy = function("def choose(facts): return str(len(facts.side.bytes_by_partition_id))")
      val row = facts(bytes = Seq.fill(partitions)(1L))
      assert(asked(policy, row) === partitions.toString)
      val first = pid
      kill(first, signal = 19)
      val (answer, seconds) = timed(asked(policy, row))
      assert(answer === "PYTHON_DEADLINE: no answer within 1000 ms")
      assert(seconds >= 1 && seconds < 3)
      assert(asked(policy, row) === partitions.toString)
      soon(!isThere(first))
    }
  }

  test("a child of a function that lives on holds no end of the pipes") {
    start()
    val child = new File(folder, "child")
    val policy = function(
      s"""def choose(facts):
         |    if facts.query.description:
         |        child = os.fork()
         |        if child == 0:
         |            time.sleep(600)
         |        with open("${child.getPath}", "w") as file: file.write(str(child))
         |    return "BROADCAST"
         |"""
    )
    assert(asked(policy, facts("fork")) === "BROADCAST")
    val forked = new String(Files.readAllBytes(child.toPath))
    try {
      val frames = channels(pid.toString).toSet.intersect(channels("self").toSet)
      assert(frames.size >= 2)
      soon((channels(forked).toSet.intersect(frames) - errors).isEmpty)
    } finally kill(forked.toLong)
  }

  test("what is no decision is refused with what is allowed") {
    start("aqepilot.ask.breaker_failures" -> "100")
    def returning(what: String) = asked(function(s"def choose(facts): return $what"))
    assert(
      returning("3") === "PYTHON_WRONG_ANSWER: the answer is 3; it has to be a string, or None."
    )
    assert(returning("object()").contains("a object is no decision"))
    assert(returning("{1: 2}").startsWith("PYTHON_WRONG_ANSWER"))
    assert(returning("b'BROADCAST'").contains("a bytes is no decision"))
    assert(returning("'x' * (2 << 20)").contains("1048576 at most"))
    assert(
      asked(function("a = []\na.append(a)\ndef choose(facts): return a"))
        .startsWith("PYTHON_WRONG_ANSWER: RecursionError")
    )
  }

  test("what writes to the answers' pipe ends its process only") {
    start()
    val policy = function(
      """def choose(facts):
        |    if facts.query.description:
        |        for fd in range(3, 30):
        |            try: os.write(fd, b"\x7f\xff\xff\xff garbage")
        |            except OSError: pass
        |    return "BROADCAST"
        |"""
    )
    assert(asked(policy, facts("write")).startsWith("PYTHON_DIED: "))
    assert(asked(policy) === "BROADCAST")
  }

  test("a function that allocates without end meets its limit, not the driver's") {
    start("aqepilot.python.memory" -> "256m", "aqepilot.ask.deadline" -> "30s")
    val policy = function(
      """def choose(facts):
        |    held = []
        |    while facts.query.description: held.append(bytearray(10 << 20))
        |    return "BROADCAST"
        |"""
    )
    assert(asked(policy, facts("much")).startsWith("PYTHON_RAISED: MemoryError"))
    assert(asked(policy) === "BROADCAST")
  }

  test("after repeated failures a function is not asked for a while, others are") {
    start("aqepilot.ask.breaker_failures" -> "2", "aqepilot.ask.breaker_time" -> "400ms")
    val mended = new File(folder, "mended")
    mended.delete()
    val policy = function(
      s"""def choose(facts):
         |    if not os.path.exists("${mended.getPath}"): raise ValueError("not yet")
         |    return "BROADCAST"
         |"""
    )
    assert(Seq.fill(2)(asked(policy)).forall(_.startsWith("PYTHON_RAISED")))
    assert(asked(policy).startsWith("PYTHON_BREAKER_OPEN: ") && asked(policy).contains("not yet"))
    assert(status.exists(_._2 == "breaker open"))
    assert(asked(function("def choose(facts): return 'BROADCAST'")) === "BROADCAST")
    mended.createNewFile()
    soon(asked(policy) == "BROADCAST")
    assert(!status.exists(_._2 == "breaker open"))
  }

  test("a policy that cannot be loaded says why") {
    start()
    write("broken.py", "x = 1 / 0\n")
    write("other.py", "number = 3\ndef choose(facts): pass\n")
    def refused(text: String) = loaded(text) match {
      case Left(error) => s"${error.code}: ${error.message}"
      case Right(_)    => fail(text)
    }
    assert(refused("python:no_such_module:f").contains("ModuleNotFoundError"))
    assert(refused("python:broken:f").contains("ZeroDivisionError: division by zero (File "))
    assert(refused("python:other:chose").contains("did you mean choose?"))
    assert(refused("python:other:number").contains("is a int, not a function"))
    write("declared.py", "def f(facts): pass\nf.aqepilot_point = 'skew_join'\n")
    assert(
      refused("python:declared:f").contains("is for skew_join, not for dynamic_join_selection")
    )
    val unknown = compiled(s"python:pickled:f:${"0" * 64}")
    assert(unknown.left.exists(_.code == PolicyError.PythonLoadFailed))
  }

  test("a session's settings alone may not name a function, submitted ones may") {
    start()
    write("named.py", "def choose(facts): return 'BROADCAST'\n")
    def compile(isSubmitted: Boolean) =
      PythonPolicy.compile("python:named:choose", point, Caller(isSubmitted, None, waits = true))
    val refused = compile(isSubmitted = false).left.toOption.get
    assert(refused.code === PolicyError.PythonNotAllowed)
    assert(refused.message.contains("spark.aqepilot.python.allow_session=true"))
    assert(compile(isSubmitted = true).left.forall(_.code != PolicyError.PythonNotAllowed))
  }

  test("a query does not wait for an import: its function is asked when it is loaded") {
    start("aqepilot.ask.deadline" -> "300ms")
    write("slow.py", "import time\ntime.sleep(3)\ndef choose(facts): return 'BROADCAST'\n")
    SessionFunctions.allow(token, null, "python:slow:choose", folder.getPath, "")
    val before = PythonWorkers.version
    val (policy, seconds) = timed(compiled("python:slow:choose", waits = false).toOption.get)
    assert(seconds < 2 && policy.code.isEmpty)
    val (answer, waited) = timed(asked(policy))
    assert(answer === "PYTHON_BUSY: its turn did not come within 300 ms" && waited < 2)
    soon(PythonWorkers.version > before)
    soon(asked(policy) == "BROADCAST")
    assert(policy.code.nonEmpty)
  }

  test("a session does not notice what another's function does") {
    start("aqepilot.ask.deadline" -> "2s", "aqepilot.ask.breaker_failures" -> "1000")
    val good = function("def choose(facts): return 'BROADCAST'")
    assert(asked(good) === "BROADCAST")
    val own = pid
    val other = "1" * 32
    Seq(
      "imports" -> "time.sleep(600)\ndef choose(facts): pass",
      "hangs" -> "def choose(facts): time.sleep(600)",
      "dies" -> "def choose(facts): os._exit(1)",
      "ends" -> "os._exit(1)"
    ).foreach { case (name, text) =>
      write(s"bad_$name.py", s"import os, time\n$text\n")
      SessionFunctions.allow(other, null, s"python:bad_$name:choose", folder.getPath, "")
      val thread = new Thread(() =>
        compiled(s"python:bad_$name:choose", other, waits = false).foreach(_.eval(facts()))
      )
      thread.start()
      assert(Seq.fill(20)(asked(good)).toSet === Set("BROADCAST"), name)
      thread.join()
    }
    assert(pid === own)
    val shown = workers(other).status(everyone = false).map(_._1)
    assert(shown.exists(_.contains("bad_hangs")) && !shown.exists(_.contains("functions_")))
    assert(!status.exists(_._1.contains("bad_")))
    PythonWorkers.end(PythonOwner.Session(other))
  }

  test("a function whose import ends the process is refused, and the others are asked") {
    start()
    val policy = function("def choose(facts): return 'BROADCAST'")
    write("exits.py", "import os\nos._exit(3)\n")
    val refused = loaded("python:exits:choose").left.toOption.get
    assert(refused.message.contains("ended while it was loaded: exit status 3"))
    assert(asked(policy) === "BROADCAST")
    write("exits.py", "def choose(facts): return 'SHUFFLE_MERGE'\n")
    assert(loaded("python:exits:choose").map(asked(_)) === Right("SHUFFLE_MERGE"))
  }

  test("functions and processes end with their sessions, ten thousand of them") {
    start()
    val before = SessionFunctions.sessions
    def brought(session: AnyRef, number: Int) = {
      val its = f"$number%032x"
      its -> SessionFunctions.register(its, session, "f", new Array[Byte](20 << 10), "", "")
    }
    val kept = new Object
    val (its, text) = brought(kept, 7)
    (1000 until 11000).foreach(n => brought(new Object, n))
    soon {
      System.gc()
      SessionFunctions.sessions == before + 1
    }
    assert(SessionFunctions.get(its, text).isDefined)
    var session = new Object
    write("ending.py", "def choose(facts): return 'BROADCAST'\n")
    SessionFunctions.allow("2" * 32, session, "python:ending:choose", folder.getPath, "")
    val policy = compiled("python:ending:choose", "2" * 32).toOption.get
    assert(asked(policy) === "BROADCAST")
    val process = workers("2" * 32).status(everyone = true).head._3.split("[ ,]")(1).toLong
    session = null
    soon {
      System.gc()
      !isThere(process)
    }
    assert(compiled("python:ending:choose", "2" * 32).isLeft)
    assert(kept != null)
  }

  test("of a session that brings many functions the newest are kept") {
    val its = "3" * 32
    val texts = (0 to SessionFunctions.MostFunctions).map { n =>
      SessionFunctions.register(its, null, "f", Array(n.toByte, 1), "", "")
    }
    assert(texts.count(SessionFunctions.get(its, _).isDefined) === SessionFunctions.MostFunctions)
    assert(SessionFunctions.get(its, texts.head).isEmpty)
  }

  test("as many sessions have processes at a time as may, the others' functions are not asked") {
    start()
    write("many.py", "def choose(facts): return 'BROADCAST'\n")
    val tokens = (0 to PythonWorkers.MostOwners).map(n => f"$n%031x" + "f")
    val compiledAll = tokens.map { its =>
      SessionFunctions.allow(its, null, "python:many:choose", folder.getPath, "")
      compiled("python:many:choose", its)
    }
    assert(compiledAll.init.forall(_.isRight))
    assert(compiledAll.last.left.exists(_.message.contains("as many sessions may have some")))
    PythonWorkers.end(PythonOwner.Session(tokens.head))
    assert(compiled("python:many:choose", tokens.last).isRight)
    assert(compiledAll.head.map(asked(_)).exists(_.startsWith("PYTHON_NO_WORKER")))
  }

  test("without an interpreter there is no worker, which is tried again later and costs no time") {
    start("pyspark.python" -> "/no/such/python")
    val policy = function("def choose(facts): return 'BROADCAST'")
    val (answers, seconds) = timed(Seq.fill(2)(asked(policy)))
    assert(answers.forall(_.startsWith("PYTHON_NO_WORKER: ")) && seconds < 2)
    assert(answers.forall(_.contains("/no/such/python")))
    assert(status.head._2 === "not running")
  }

  test("an interpreter that is no Python is no worker") {
    start("pyspark.python" -> "true")
    val answer = asked(function("def choose(facts): return 'BROADCAST'"))
    assert(answer.startsWith("PYTHON_NO_WORKER: true: ") && answer.contains("exit status 0"))
  }

  test("10,000 asks of 8 threads each get their own answer") {
    start("aqepilot.python.workers" -> "2", "aqepilot.ask.deadline" -> "60s")
    val policy = function("def choose(facts): return facts.query.description")
    val pool = Executors.newFixedThreadPool(8)
    try {
      val tasks = (0 until 8).map { thread =>
        pool.submit(new Callable[Int] {
          override def call(): Int = (0 until 1250).count { i =>
            val name = s"$thread-$i"
            asked(policy, facts(name, Seq.fill(i % 50)(i.toLong))) == name
          }
        })
      }
      assert(tasks.map(_.get).sum === 10000)
    } finally pool.shutdownNow()
  }

  test("a query that is cancelled while it asks gets its interrupt, and the next ask is served") {
    start("aqepilot.ask.deadline" -> "600s")
    val hangs = new File(folder, "asked")
    val policy = hanging(hangs)
    assert(asked(policy) === "BROADCAST")
    val interrupted = new CountDownLatch(1)
    val thread = new Thread(() =>
      try policy.eval(facts("hang"))
      catch { case _: InterruptedException => interrupted.countDown() }
    )
    thread.start()
    soon(hangs.exists)
    thread.interrupt()
    assert(interrupted.await(10, TimeUnit.SECONDS))
    assert(asked(policy) === "BROADCAST")
  }

  test("no process is left when the context stops in the middle of an ask") {
    start("aqepilot.ask.deadline" -> "600s")
    val hangs = new File(folder, "stopping")
    val policy = hanging(hangs)
    assert(asked(policy) === "BROADCAST")
    val before = pid
    @volatile var answer = ""
    val thread = new Thread(() => answer = asked(policy, facts("hang")))
    thread.start()
    soon(hangs.exists)
    sc.stop()
    thread.join(20000)
    assert(answer.startsWith("PYTHON_"))
    soon(!isThere(before))
  }

  test("nobody but the driver holds an end of a worker's pipes, and it has no other channel") {
    start()
    assert(asked(function("def choose(facts): return 'BROADCAST'")) === "BROADCAST")
    val own = channels(pid.toString)
    assert(own.nonEmpty && own.forall(c => c.startsWith("pipe:") || c == "/dev/null"), own)
    val driver = channels("self")
    val others = Option(new File("/proc").list).toSeq.flatten
      .filter(name => name.forall(_.isDigit) && name.toLong != pid)
      .filterNot(name => new File(s"/proc/$name").getCanonicalPath.endsWith("/" + self))
    val frames = own.filter(_.startsWith("pipe:")).toSet.intersect(driver.toSet)
    assert(frames.size >= 2)
    others.foreach(name => assert(channels(name).toSet.intersect(frames).isEmpty, name))
  }

  test(
    "with no file descriptor left, a worker that runs answers; one that is lost is missed until there are"
  ) {
    start("aqepilot.ask.breaker_failures" -> "100")
    val policy = function("def choose(facts): return 'BROADCAST'")
    assert(asked(policy) === "BROADCAST")
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

  test("the revision tells the function's files by their content, data that it loads too") {
    val data = write("table.json", "{}")
    write(
      "learned.py",
      s"""table = open("${data.getPath}").read()\ndef choose(facts): return None\n"""
    )
    def code = {
      start()
      try loaded("python:learned:choose").toOption.flatMap(_.code).get
      finally afterEach()
    }
    val first = code
    assert(first.length === 64 && code === first)
    write("table.json", """{"a": 1}""")
    assert(code !== first)
  }

  test("files that changed while the application ran are not taken for the recorded revision") {
    start()
    val policy = function(
      """def choose(facts):
        |    if facts.query.description: os._exit(1)
        |    return "BROADCAST"
        |"""
    )
    assert(asked(policy) === "BROADCAST")
    val name = s"functions_$modules.py"
    write(name, "import os\ndef choose(facts): return 'SHUFFLE_MERGE'\n")
    assert(asked(policy, facts("end")).startsWith("PYTHON_DIED"))
    assert(asked(policy).contains("its files changed while the application ran"))
  }
}
