package org.apache.spark.sql.aqepilot.facts

import org.scalatest.funsuite.AnyFunSuite

class DbtModelsSuite extends AnyFunSuite {

  private val dbt =
    """/* {"app": "dbt", "dbt_version": "1.11.2", "profile_name": "shop", "target_name": "dev", "node_id": "model.shop.orders"} */"""

  test("a model is named by the comment of dbt before or behind a query") {
    for (sql <- Seq(s"$dbt\nSELECT 1", s"SELECT 1\n$dbt", s"/* ours */ $dbt SELECT '/*'"))
      assert(DbtModels.inComment(sql) === Some("model.shop.orders"), sql)
  }

  test("no other comment names one") {
    for (
      sql <- Seq(
        "SELECT 1",
        "/* model.shop.orders */ SELECT 1",
        dbt.replace("\"dbt\"", "\"other\"") + " SELECT 1",
        dbt.replace("node_id", "connection_name") + " SELECT 1",
        """/* {"app": "dbt"} */ SELECT '"node_id": "model.shop.orders"' """
      )
    )
      assert(DbtModels.inComment(sql) === None, sql)
  }
}
