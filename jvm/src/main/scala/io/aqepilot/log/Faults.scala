package io.aqepilot.log

import java.util.concurrent.ConcurrentHashMap

import org.slf4j.LoggerFactory

/** Keeps faults of the record away from queries: each is counted, the first of its kind is logged.
  */
final class Faults(count: String => Unit) {
  private val logged = ConcurrentHashMap.newKeySet[String]()

  def swallow[T](kind: String, otherwise: => T)(body: => T): T =
    try body
    catch {
      case fatal @ (_: InterruptedException | _: OutOfMemoryError) => throw fatal
      case fault: Throwable                                        =>
        count(kind)
        if (logged.add(kind)) {
          Faults.log.warn(
            s"aqepilot's record lacks something ($kind failed); no query is affected, and further " +
              "faults of this kind are only counted",
            fault
          )
        }
        otherwise
    }
}

private object Faults {
  private val log = LoggerFactory.getLogger("io.aqepilot.log")
}
