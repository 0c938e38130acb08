package org.apache.spark.sql.aqepilot.points.cost_evaluation

import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.record.DecisionRecord
import org.apache.spark.sql.aqepilot.rule.Registered
import org.apache.spark.sql.aqepilot.spark.{FailOpen, OurCosts, SparkCosts}
import org.apache.spark.sql.execution.adaptive.{AqePilotCostEvaluator, CostEvaluator}
import org.apache.spark.sql.internal.SQLConf

/** Makes [[PolicyCostEvaluator]] the cost evaluator of this application's sessions.
  *
  * By the running application's configuration alone: submitted, the setting would fail every query where the
  * jar is missing. An evaluator that the application was submitted with is wrapped; one that a session sets for
  * itself stays, and the point is off there.
  *
  * Spark loads the named class with the context class loader of whatever thread plans a query. Those of
  * `ForkJoinPool.commonPool()` do not see a jar given by `--jars`, so that Spark's own class loader is given
  * the class.
  *
  * Source: `spark.sql.adaptive.customCostEvaluatorClass`.
  */
object CostEvaluatorInstall {

  private type Factory = AtomicReference[SparkConf => CostEvaluator]

  private val setting = OurCosts.setting
  private val ours = OurCosts.evaluator

  /** The evaluator that the application was submitted with. */
  @volatile private var theirs: Option[String] = None

  /** Why no thread can be relied on to find ours. */
  @volatile private var fault: Option[String] = None

  /** Before the first session's state is built out of this configuration. */
  def apply(running: SparkConf): Unit = synchronized {
    if (Health.isLive(DecisionPoints.CostEvaluation)) {
      fault = FailOpen.recover(DecisionPoints.CostEvaluation) { e =>
        Health.after(e, DecisionPoints.CostEvaluation)
        Option(FailOpen.short(e))
      } {
        makeVisible(running)
        None
      }
      val submitted = running.getOption(setting.key)
      if (fault.isEmpty && !submitted.contains(ours)) {
        theirs = submitted
        running.set(setting.key, ours)
      }
    }
  }

  private def makeVisible(running: SparkConf): Unit = {
    val loader = classOf[CostEvaluator].getClassLoader
    def visible(name: String): Class[_] =
      try Class.forName(name, false, loader)
      catch { case _: ClassNotFoundException => define(name, loader) }
    val evaluator = visible(ours)
    val sparks = visible(ours + "$Factory$").getField("MODULE$").get(null).asInstanceOf[Factory]
    // With spark.driver.userClassPathFirst the jar's own copy is another one.
    Seq[Factory](sparks, AqePilotCostEvaluator.Factory).foreach(_.set(make))
    // As Spark will do when it plans a query, which must not fail there.
    Registered.whole(new PolicyCostEvaluator(running))
    Registered.whole(
      evaluator.getConstructor(classOf[SparkConf]).newInstance(running).asInstanceOf[AnyRef]
    )
  }

  private def make(running: SparkConf): CostEvaluator =
    DecisionRecord.failingOpen(CostEvaluationPoint, builtIn(running)) {
      new PolicyCostEvaluator(running)
    }

  /** Spark's launcher opens `java.lang` for this. */
  private def define(name: String, loader: ClassLoader): Class[_] = {
    val in = getClass.getClassLoader.getResourceAsStream(name.replace('.', '/') + ".class")
    val code =
      try Iterator.continually(in.read()).takeWhile(_ >= 0).map(_.toByte).toArray
      finally in.close()
    val defineClass = classOf[ClassLoader].getDeclaredMethod(
      "defineClass",
      classOf[String],
      classOf[Array[Byte]],
      classOf[Int],
      classOf[Int]
    )
    defineClass.setAccessible(true)
    defineClass
      .invoke(loader, name, code, Int.box(0), Int.box(code.length))
      .asInstanceOf[Class[_]]
  }

  /** What Spark would evaluate with, were we not there: also where a Spark lacks what our own evaluator needs. */
  def builtIn(running: SparkConf): CostEvaluator =
    theirs.fold(SparkCosts.evaluator(SQLConf.get))(CostEvaluator.instantiate(_, running))

  /** Why the point is off in a session. */
  def reasonOff(conf: SQLConf): Option[String] =
    conf.getConf(setting) match {
      case Some(`ours`) => None
      case Some(own)    => Some(s"the session's own ${setting.key}=$own stays")
      case None         =>
        Some(
          fault.getOrElse(
            "the session was made before the extension was applied, or unset " + setting.key
          )
        )
    }
}
