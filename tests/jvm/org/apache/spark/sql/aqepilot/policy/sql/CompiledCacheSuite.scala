package org.apache.spark.sql.aqepilot.policy.sql

import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch}

import scala.util.{Success, Try}

import org.apache.spark.sql.aqepilot.policy.{PolicyError, SqlPolicy}
import org.apache.spark.sql.types.StringType
import org.scalatest.funsuite.AnyFunSuite

class CompiledCacheSuite extends AnyFunSuite with SampleFacts {

  private def key(text: String) = CompiledCache.Key(text, facts, Seq(StringType))

  private val outcome: Either[PolicyError, SqlPolicy] =
    Left(PolicyError(PolicyError.Empty, "", None, None, Nil))

  test("a text is compiled once, and a refusal remembered") {
    assert(compiled("'once'") eq compiled("'once'"))
    assert(refused("once") eq refused("once"))
  }

  test("what was not tried is not kept") {
    val cache = new CompiledCache(maxEntries = 3, maxTextBytes = 1000)
    val busy = Left(PolicyError(PolicyError.CompilerBusy, "", None, None, Nil))
    assert(cache.getOrElseUpdate(key("a"))(busy) == busy)
    assert(cache.getOrElseUpdate(key("a"))(outcome) == outcome)
  }

  test("the number of entries is bounded, least recently used out first") {
    val cache = new CompiledCache(maxEntries = 3, maxTextBytes = 1000)
    Seq("a", "b", "c", "a", "d").foreach(text => cache.getOrElseUpdate(key(text))(outcome))
    assert(cache.size == 3 && cache.bytes == 6)
    var compiled = Seq.empty[String]
    Seq("a", "c", "d", "b").foreach { text =>
      cache.getOrElseUpdate(key(text)) { compiled :+= text; outcome }
    }
    assert(compiled == Seq("b"))
  }

  test("the texts' bytes are bounded") {
    val cache = new CompiledCache(maxEntries = 100, maxTextBytes = 100)
    (1 to 50).foreach(i => cache.getOrElseUpdate(key(f"$i%010d"))(outcome))
    assert(cache.bytes <= 100 && cache.size == 5)
    cache.getOrElseUpdate(key("x" * 1000))(outcome)
    assert(cache.bytes == 0 && cache.size == 0)
  }

  test("the compiler's cache stays bounded") {
    (1 to 300).foreach(i => compiled(s"'bounded $i'"))
    assert(PolicyCompiler.cached.size <= 256)
  }

  test("a compilation that throws leaves nothing behind") {
    val cache = new CompiledCache(maxEntries = 3, maxTextBytes = 1000)
    assertThrows[InterruptedException](
      cache.getOrElseUpdate(key("a"))(throw new InterruptedException)
    )
    assert(cache.size == 0 && cache.bytes == 0)
  }

  /** Two threads that want a text; the first one's compilation ends by `ending` when the second one waits. */
  private def both(ending: => CompiledCache.Outcome): (Try[CompiledCache.Outcome], Seq[String]) = {
    val cache = new CompiledCache(maxEntries = 3, maxTextBytes = 1000)
    val compiling = new CountDownLatch(1)
    val who = new ConcurrentLinkedQueue[String]
    lazy val second: Thread = new Thread(() => {
      compiling.await()
      own = Try(cache.getOrElseUpdate(key("a")) { who.add("second"); outcome })
    })
    lazy val first = new Thread(() => {
      Try(cache.getOrElseUpdate(key("a")) {
        who.add("first")
        compiling.countDown()
        while (second.getState != Thread.State.WAITING) Thread.sleep(1)
        ending
      })
      ()
    })
    Seq(second, first).foreach(_.start())
    Seq(second, first).foreach(_.join())
    (own, who.toArray(Array.empty[String]).toSeq)
  }

  @volatile private var own: Try[CompiledCache.Outcome] = _

  test("no text is compiled twice at a time: the second thread waits for the first") {
    assert(both(outcome) == ((Success(outcome), Seq("first"))))
  }

  test("who waits for a compilation that is ended compiles the text itself") {
    assert(both(throw new InterruptedException) == ((Success(outcome), Seq("first", "second"))))
  }
}
