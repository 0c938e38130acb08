package org.apache.spark.sql.aqepilot.policy.python

import java.io.File
import java.lang.management.ManagementFactory
import java.nio.file.Files
import java.util.concurrent.{Callable, CountDownLatch, Executors, TimeUnit}

import scala.collection.JavaConverters._

import org.scalatest.funsuite.AnyFunSuite

/** What is asked of functions, and what their processes come to. */
class PythonWorkersSuite extends AnyFunSuite with PythonWorkersFixture {

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
    val answer = asked(policy, facts("sales"))
    assert(
      answer.startsWith("PYTHON_RAISED: KeyError: 'sales' (File ") && answer.contains("line 3")
    )
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
      assert(seconds >= 1 && seconds < 30)
      assert(served(policy) === "BROADCAST")
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

  test("a worker whose process ends right before a question starts no other for it") {
    start()
    val policy = function("def choose(facts): return 'BROADCAST'")
    assert(asked(policy) === "BROADCAST")
    val Right(known) = workers().load(PythonText.of(policy.text).toOption.get, point, true)
    val worker = workers().workers.find(_.has(known)).get
    kill(pid)
    soon(!worker.has(known))
    assert(worker.ask(known, facts()) === PythonWorker.Outcome.Unsent)
    assert(worker.state === "not running")
    assert(asked(policy) === "BROADCAST")
  }

  Seq(10, 1000000).foreach { partitions =>
    test(s"a process that does not read $partitions numbers is waited for no longer than that") {
      start("aqepilot.ask.deadline" -> "3s")
      val policy = function("def choose(facts): return str(len(facts.side.bytes_by_partition_id))")
      val row = facts(bytes = Seq.fill(partitions)(1L))
      assert(asked(policy, row) === partitions.toString)
      val first = pid
      kill(first, signal = 19)
      val (answer, seconds) = timed(asked(policy, row))
      assert(answer === "PYTHON_DEADLINE: no answer within 3000 ms")
      assert(seconds >= 3 && seconds < 30)
      assert(served(policy, row) === partitions.toString)
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
      val pipes = channels(pid.toString).filter(_.startsWith("pipe:")).toSet
      val frames = pipes.intersect(channels("self").toSet)
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
    start("aqepilot.ask.breaker_failures" -> "2", "aqepilot.ask.breaker_time" -> "8s")
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

  test("without an interpreter there is no worker, which is tried again later and costs no time") {
    start("pyspark.python" -> "/no/such/python")
    val policy = function("def choose(facts): return 'BROADCAST'")
    val (answers, seconds) = timed(Seq.fill(2)(asked(policy)))
    assert(answers.forall(_.startsWith("PYTHON_NO_WORKER: ")) && seconds < 5)
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
    val report = new File(folder, "told")
    val options = ManagementFactory.getRuntimeMXBean.getInputArguments.asScala
    val words = Seq(s"${System.getProperty("java.home")}/bin/java") ++ options ++
      Seq("-cp", System.getProperty("java.class.path"), classOf[FewFiles].getName, report.getPath)
    new ProcessBuilder(words: _*).inheritIO().start().waitFor()
    assert(new String(Files.readAllBytes(report.toPath)) === "passed")
  }
}
