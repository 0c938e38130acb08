package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.Sessions
import org.apache.spark.sql.catalyst.rules.Rule

/** The rules of other extensions that Spark runs after its own and before ours: what they did is neither undone nor
  * overruled. A rule that stands after ours changes what ours left, as it would change Spark's.
  */
private object OtherRules {

  private val ours = "org.apache.spark.sql.aqepilot."

  def prepareStages(session: Sessions.Classic): Boolean =
    areBeforeOurs(session.sessionState.adaptiveRulesHolder.queryStagePrepRules)

  def optimizeStages(session: Sessions.Classic): Boolean =
    areBeforeOurs(session.sessionState.adaptiveRulesHolder.queryStageOptimizerRules)

  private def areBeforeOurs(rules: Seq[Rule[_]]): Boolean =
    rules.headOption.exists(!_.getClass.getName.startsWith(ours))
}
