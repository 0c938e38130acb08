package io.aqepilot.policy

import java.util.concurrent.{ExecutionException, FutureTask, TimeUnit, TimeoutException}

/** Runs a compilation on a thread of its own.
  *
  * Parser and analyser recurse with the text's nesting, and the caller may stand deep in its stack
  * already: here the stack is large and empty, and no thread-local of an analysis under way
  * (`AnalysisContext`) is in sight.
  */
private[policy] object CompileThread {
  private val StackBytes = 64L << 20 // reserved; memory is used as far as the text is nested
  private val TimeoutSeconds = 60L

  def run(compile: => CompiledCache.Outcome): CompiledCache.Outcome = {
    val task = new FutureTask[CompiledCache.Outcome](() => compile)
    val thread = new Thread(null, task, "aqepilot-compile", StackBytes)
    thread.setDaemon(true)
    thread.start()
    try task.get(TimeoutSeconds, TimeUnit.SECONDS)
    catch {
      case _: TimeoutException =>
        val message = s"Compiling took more than $TimeoutSeconds seconds: write a simpler text."
        Left(PolicyError(PolicyError.TooComplex, message, None, None, Nil))
      case e: ExecutionException => throw e.getCause
    }
  }
}
