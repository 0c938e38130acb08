package io.aqepilot.policy

import java.util.concurrent.{ExecutionException, FutureTask, Semaphore, TimeUnit, TimeoutException}

/** Runs a compilation on a thread of its own.
  *
  * Parser and analyser recurse with the text's nesting, and the caller may stand deep in its stack
  * already: here the stack is large and empty, and no thread-local of an analysis under way
  * (`AnalysisContext`) is in sight.
  *
  * There are never more than [[MaxThreads]], also of those whose callers no longer wait.
  */
private[policy] object CompileThread {
  private val StackBytes = 64L << 20 // reserved; memory is used as far as the text is nested
  private val TimeoutSeconds = 60L

  val MaxThreads = 4

  private val free = new Semaphore(MaxThreads)

  def run(
      compile: => CompiledCache.Outcome,
      timeoutSeconds: Long = TimeoutSeconds
  ): CompiledCache.Outcome =
    if (!free.tryAcquire(timeoutSeconds, TimeUnit.SECONDS))
      refused(
        s"$MaxThreads other texts have been compiled for $timeoutSeconds seconds: try it later."
      )
    else {
      val task = new FutureTask[CompiledCache.Outcome](() => compile)
      val thread = new Thread(
        null,
        () =>
          try task.run()
          finally free.release(),
        "aqepilot-compile",
        StackBytes
      )
      thread.setDaemon(true)
      try thread.start()
      catch {
        case e: Throwable =>
          free.release()
          throw e
      }
      try task.get(timeoutSeconds, TimeUnit.SECONDS)
      catch {
        case _: TimeoutException =>
          thread.interrupt()
          refused(s"Compiling took more than $timeoutSeconds seconds: write a simpler text.")
        case e: ExecutionException => throw e.getCause
      }
    }

  private def refused(message: String) =
    Left(PolicyError(PolicyError.TooComplex, message, None, None, Nil))
}
