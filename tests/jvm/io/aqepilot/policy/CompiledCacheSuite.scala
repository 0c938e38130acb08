package io.aqepilot.policy

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
}
