package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, JoinStrategy, SideState}
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.LogicalQueryStageStrategy
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** The rules of other extensions: what they did is neither undone nor overruled. A rule that stands after ours changes
  * what ours left, as it would change Spark's.
  */
private[aqepilot] object OtherRules {

  private val ours = "org.apache.spark.sql.aqepilot."

  /** Whether such rules prepare stages, after Spark's own and before ours. */
  def prepareStages(session: Sessions.Classic): Boolean =
    areBeforeOurs(session.sessionState.adaptiveRulesHolder.queryStagePrepRules)

  /** Whether such rules optimize stages, after Spark's own and before ours. */
  def optimizeStages(session: Sessions.Classic): Boolean =
    areBeforeOurs(session.sessionState.adaptiveRulesHolder.queryStageOptimizerRules)

  private def areBeforeOurs(rules: Seq[Rule[_]]): Boolean =
    rules.headOption.exists(!isOurs(_))

  private def isOurs(rule: Rule[_]) = rule.getClass.getName.startsWith(ours)

  /** How the strategies of extensions that stand after a strategy of ours plan a join; empty when they leave it to
    * Spark's own, of which SparkPlanner puts LogicalQueryStageStrategy first.
    */
  def planned(session: Sessions.Classic, after: SparkStrategy, join: Join): Seq[SparkPlan] =
    session.sessionState.planner.strategies.iterator
      .dropWhile(_ ne after)
      .drop(1)
      .takeWhile(_ ne LogicalQueryStageStrategy)
      .map(_(join))
      .find(_.nonEmpty)
      .getOrElse(Nil)

  /** Whether such a rule has given a side of the join its hint while the query ran: it is not the user's, not what
    * Spark's rule says, and not a policy's.
    *
    * AQEOptimizer runs the rules of all extensions again until none changes the plan, so that the order among them
    * does not matter.
    */
  def gaveHint(session: Sessions.Classic, join: Join, state: JoinState): Boolean =
    session.sessionState.adaptiveRulesHolder.runtimeOptimizerRules.exists(!isOurs(_)) && {
      lazy val sparkHint = JoinStrategy.hintBySpark(join, state)
      def isOthers(side: SideState, hintOf: JoinHint => Option[HintInfo]) = {
        def word(hint: JoinHint) = JoinState.word(hintOf(hint))
        val now = word(join.hint)
        now != word(state.userHint) && !side.ourHints.contains(now) && now != word(sparkHint)
      }
      isOthers(state.left, _.leftHint) || isOthers(state.right, _.rightHint)
    }
}
