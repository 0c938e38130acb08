package org.apache.spark.sql.aqepilot.policy.python

import java.io.File

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.scalatest.funsuite.AnyFunSuite

/** Which functions are loaded, when, and for whom. */
class PythonOwnersSuite extends AnyFunSuite with PythonWorkersFixture {

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
    start("aqepilot.ask.deadline" -> "300ms", "aqepilot.ask.breaker_failures" -> "1000")
    val go = new File(folder, "go")
    write(
      "slow.py",
      s"""import os, time
         |while not os.path.exists("${go.getPath}"): time.sleep(0.02)
         |def choose(facts): return 'BROADCAST'
         |"""
    )
    SessionFunctions.ofDriver.allow(token, null, "python:slow:choose", folder.getPath, "")
    val before = PythonWorkers.version
    // Whoever waited for the import would wait for ever.
    val policy = compiled("python:slow:choose", waits = false).toOption.get
    assert(policy.code.isEmpty)
    assert(asked(policy) === "PYTHON_BUSY: its turn did not come within 300 ms")
    assert(go.createNewFile())
    soon(PythonWorkers.version > before)
    soon(asked(policy) == "BROADCAST")
    assert(policy.code.nonEmpty)
  }

  test("a session does not notice what another's function does") {
    start("aqepilot.ask.deadline" -> "4s", "aqepilot.ask.breaker_failures" -> "1000")
    val good = function("def choose(facts): return 'BROADCAST'")
    assert(asked(good) === "BROADCAST")
    val own = pid
    val other = "1" * 32
    val asking = Seq(
      "imports" -> "time.sleep(600)\ndef choose(facts): pass",
      "hangs" -> "def choose(facts): time.sleep(600)",
      "dies" -> "def choose(facts): os._exit(1)",
      "ends" -> "os._exit(1)"
    ).map { case (name, text) =>
      write(s"bad_$name.py", s"import os, time\n$text\n")
      SessionFunctions.ofDriver.allow(other, null, s"python:bad_$name:choose", folder.getPath, "")
      val thread = new Thread(() =>
        compiled(s"python:bad_$name:choose", other, waits = false).foreach(_.eval(facts()))
      )
      thread.start()
      assert(Seq.fill(20)(asked(good)).toSet === Set("BROADCAST"), name)
      thread
    }
    asking.foreach(_.join())
    assert(asked(good) === "BROADCAST")
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

  test("what can be loaded no more is loaded again when the breaker lets it be tried") {
    start("aqepilot.ask.breaker_failures" -> "1", "aqepilot.ask.breaker_time" -> "8s")
    val isBroken = new File(folder, "broken")
    write(
      "sometimes.py",
      s"""import os
         |if os.path.exists("${isBroken.getPath}"): os._exit(3)
         |def choose(facts): return "BROADCAST"
         |"""
    )
    val policy = loaded("python:sometimes:choose").toOption.get
    assert(asked(policy) === "BROADCAST")
    isBroken.createNewFile()
    kill(pid)
    soon(asked(policy).startsWith("PYTHON_NO_WORKER: the worker process ended while it was loaded"))
    assert(asked(policy).startsWith("PYTHON_BREAKER_OPEN"))
    assert(asked(function("def choose(facts): return 'SHUFFLE_MERGE'")) === "SHUFFLE_MERGE")
    isBroken.delete()
    soon(asked(policy) == "BROADCAST")
  }

  test("functions and processes end with their sessions, ten thousand of them") {
    start()
    val before = SessionFunctions.ofDriver.sessions
    def brought(session: AnyRef, number: Int) = {
      val token = f"$number%032x"
      token -> SessionFunctions.ofDriver.register(
        token,
        session,
        "f",
        new Array[Byte](20 << 10),
        "",
        ""
      )
    }
    val kept = new Object
    val (token, text) = brought(kept, 7)
    (1000 until 11000).foreach(n => brought(new Object, n))
    soon {
      System.gc()
      SessionFunctions.ofDriver.sessions == before + 1
    }
    assert(SessionFunctions.ofDriver.get(token, text).isDefined)
    var session = new Object
    write("ending.py", "def choose(facts): return 'BROADCAST'\n")
    SessionFunctions.ofDriver.allow("2" * 32, session, "python:ending:choose", folder.getPath, "")
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
    val token = "3" * 32
    val texts = (0 to SessionFunctions.MostFunctions).map { n =>
      SessionFunctions.ofDriver.register(token, null, "f", Array(n.toByte, 1), "", "")
    }
    assert(texts.count(SessionFunctions.ofDriver.get(
      token,
      _
    ).isDefined) === SessionFunctions.MostFunctions)
    assert(SessionFunctions.ofDriver.get(token, texts.head).isEmpty)
  }

  test("as many sessions have processes at a time as may, the others' functions are not asked") {
    start()
    write("many.py", "def choose(facts): return 'BROADCAST'\n")
    val tokens = (0 to PythonWorkers.MostOwners).map(n => f"$n%031x" + "f")
    val compiledAll = tokens.map { token =>
      SessionFunctions.ofDriver.allow(token, null, "python:many:choose", folder.getPath, "")
      compiled("python:many:choose", token)
    }
    assert(compiledAll.init.forall(_.isRight))
    assert(compiledAll.last.left.exists(_.message.contains("as many sessions may have some")))
    PythonWorkers.end(PythonOwner.Session(tokens.head))
    assert(compiled("python:many:choose", tokens.last).isRight)
    assert(compiledAll.head.map(asked(_)).exists(_.startsWith("PYTHON_NO_WORKER")))
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
