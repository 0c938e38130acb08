package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.spark.{Application, Recent}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SQLExecution

/** The dbt model of a query, by the comment of JSON that dbt puts before or behind each query: its `node_id`, such as
  * `model.shop.orders` (dbt's `query-comment`; `dbt.adapters.base.query_headers`). Spark keeps a query's text with its
  * plan until the query has ended, so a model is kept from the first call for an execution on.
  */
private[aqepilot] object DbtModels {

  def of(sc: SparkContext, executionId: Option[Long]): Option[String] = executionId.flatMap { id =>
    val models = known.of(sc)
    Option(models.get(id)).getOrElse {
      // A command runs its query as an execution of its own.
      val root = Option(sc.getLocalProperty(SQLExecution.EXECUTION_ROOT_ID_KEY)).map(_.toLong)
      val plans = Seq(Some(id), root).flatMap(QueryFacts.execution).map(_.logical)
      val model = plans.flatMap(text).flatMap(inComment).headOption
      if (plans.nonEmpty) models.put(id, model)
      model
    }
  }

  private val known = new Application.Value(_ => Recent.map[Long, Option[String]](1000))

  private def text(plan: LogicalPlan): Option[String] =
    plan.collectFirst { case p if p.origin.sqlText.isDefined => p.origin.sqlText.get }

  /** The model that a query's text names. */
  def inComment(sql: String): Option[String] =
    for {
      comment <- Comment.findFirstIn(sql)
      _ <- OfDbt.findFirstIn(comment)
      node <- Node.findFirstMatchIn(comment)
    } yield node.group(1)

  private val Comment = """/\*\s*\{[^*]*\}\s*\*/""".r
  private val OfDbt = """"app"\s*:\s*"dbt"""".r
  private val Node = """"node_id"\s*:\s*"([^"]+)"""".r
}
