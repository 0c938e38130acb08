package org.apache.spark.sql.aqepilot.spark.engines

import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** A native engine, which runs operators of its own in the place of Spark's. It is known by names alone: no class of it
  * is needed, neither here nor in the driver.
  *
  * @param name
  *   as the fact `conf.engine` has it
  * @param plugin
  *   its class in `spark.plugins`, the last part of the name
  * @param extension
  *   its class in `spark.sql.extensions`, the same
  * @param switches
  *   settings of which each has to be true, its default
  * @param rules
  *   the package of its rules
  */
final case class Engine private (
    name: String,
    plugin: String,
    extension: String,
    switches: Seq[String],
    rules: String
) {

  private def isOn(conf: SQLConf): Boolean = isSubmitted(conf) &&
    switches.forall(!conf.getConfString(_, "true").trim.equalsIgnoreCase("false"))

  private def isSubmitted(conf: SQLConf): Boolean =
    names(conf, "spark.plugins").exists(_.endsWith("." + plugin)) ||
      names(conf, "spark.sql.extensions").exists(_.endsWith("." + extension))

  private def names(conf: SQLConf, key: String): Seq[String] =
    conf.getConfString(key, "").split(',').toSeq.map(_.trim)
}

object Engine {

  private val all = Seq(
    Engine(
      "COMET",
      "CometPlugin",
      "CometSparkSessionExtensions",
      Seq("spark.comet.enabled", "spark.comet.exec.enabled"),
      "org.apache.comet."
    ),
    Engine(
      "GLUTEN",
      "GlutenPlugin",
      "GlutenSessionExtensions",
      Seq("spark.gluten.enabled"),
      "org.apache.gluten."
    )
  )

  /** The engine that is switched on in a session. */
  def of(conf: SQLConf): Option[Engine] = all.find(_.isOn(conf))

  /** The rules by which the session's engine takes operators while stages are prepared. */
  private[engines] def rules(session: Sessions.Classic): Seq[Rule[SparkPlan]] =
    of(session.sessionState.conf).toSeq.flatMap { engine =>
      preparing(session).filter(isOf(engine, _))
    }

  /** Why a rule of ours that prepares stages finds the engine's operators where Spark's were, if so: the engine's
    * extension stands before ours.
    */
  def reasonFirst(session: Sessions.Classic): Option[String] = for {
    engine <- of(session.sessionState.conf)
    first <- preparing(session).headOption if isOf(engine, first)
  } yield s"${engine.name}'s rules take the operators before this point sees them: put " +
    "io.aqepilot.AqePilotExtension first in spark.sql.extensions"

  private def preparing(session: Sessions.Classic) =
    session.sessionState.adaptiveRulesHolder.queryStagePrepRules

  private def isOf(engine: Engine, rule: Rule[SparkPlan]) =
    rule.getClass.getName.startsWith(engine.rules)
}
