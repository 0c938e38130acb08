package org.apache.spark.sql.aqepilot

import java.io.File
import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.policy.python.{PythonWorkers, SessionFunctions}
import org.apache.spark.sql.aqepilot.record.DecisionLog
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.Record
import org.apache.spark.sql.execution.adaptive.AqePilotCostEvaluator
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.AqePilotExtension

/** SQL's `java_method`, `reflect` and `try_reflect` call any public static method whose parameters take texts, numbers
  * and booleans. Scala makes such methods of an object's methods and of function literals: none grants, loads or changes
  * anything.
  */
class StaticMethodsSuite extends AnyFunSuite with BeforeAndAfterAll {

  private val folder = Files.createTempDirectory("aqepilot-statics").toFile
  private val mark = new File(folder, "imported")
  private val token = "0123456789abcdef" * 2
  private val function = "python:evil:f"

  private lazy val spark = SparkSession
    .builder()
    .master("local[1]")
    .config("spark.sql.extensions", classOf[AqePilotExtension].getName)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .getOrCreate()

  override def beforeAll(): Unit = {
    Files.write(
      new File(folder, "evil.py").toPath,
      s"open('${mark.getPath}', 'w').close()\ndef f(facts):\n    return None\n".getBytes
    )
    spark.conf.set("spark.aqepilot.python.token", token)
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  /** What a call could have changed, by name. */
  private def state: Map[String, Any] = Map(
    "functions that sessions brought" -> SessionFunctions.ofDriver.sessions,
    "changes of them" -> SessionFunctions.ofDriver.version,
    "worker processes" -> PythonWorkers.active(_ => true).size,
    "processes" -> processes,
    "threads" -> Thread.getAllStackTraces.keySet.asScala.map(_.getName)
      .filter(n => n.startsWith("aqepilot") && n != "aqepilot-compile"),
    "settings' entries" -> AqePilotConf.settings.filter(s => ConfigEntry.findEntry(s.key) != null),
    "the application's settings" -> spark.sparkContext.conf.getAll.toSet,
    "the session's settings" -> spark.conf.getAll,
    "who evaluates costs" -> AqePilotCostEvaluator.Factory.get,
    "points that are off" -> DecisionPoints.names.map(Health.reasonOff),
    "forced joins" -> JoinState.anyForced,
    "whose record it is" -> Record.source,
    "what the record counts" -> DecisionLog.getActive.map(_.counters),
    "whether Python may be named" -> answered(
      s"SELECT code FROM aqepilot_check('skew_join', '$function')"
    ),
    "whether the module was imported" -> mark.exists,
    "a query of adaptive joins" -> answered(
      "SELECT a.id % 3, count(*) FROM range(100) a JOIN range(100) b ON a.id = b.id GROUP BY 1 ORDER BY 1"
    )
  )

  // By its name, as a jar for 3.5 is compiled for a Java that has none.
  private def processes: Long = {
    val handle = Class.forName("java.lang.ProcessHandle")
    val own = handle.getMethod("current").invoke(null)
    handle.getMethod("children").invoke(own).asInstanceOf[java.util.stream.Stream[_]].count
  }

  private def answered(query: String): Seq[String] = {
    SparkSession.setActiveSession(spark)
    spark.newSession().sql(query).collect().map(_.toString).toSeq
  }

  test("what SQL can call changes nothing") {
    val methods = StaticMethods.callable
    val (before, began) = (state, System.nanoTime())
    assert(before("whether Python may be named") === Seq("[PYTHON_NOT_ALLOWED]"))
    val statics = new StaticMethods(Seq("x", token, function, folder.getPath, "python3"))
    val calls = methods.map(m => m -> statics.call(m))
    info(
      s"${calls.map(_._2).sum} calls of ${methods.size} methods in ${(System.nanoTime() - began) / 1000000} ms"
    )
    // None is left out: each class has been loaded, and objects have such methods.
    assert(methods.size > 1000 && calls.count(_._2 > 0) === methods.size)
    val after = state
    assert(before.keys.toSeq.sorted.filter(k => before(k) != after(k)).map(k =>
      (k, before(k), after(k))
    ) === Nil)
  }
}
