package org.apache.spark.sql.aqepilot.spark

/** What a page of Spark's UI is asked with; 4.0 went from `javax.servlet` to `jakarta.servlet`. */
private[aqepilot] object Servlets {
  type Request = javax.servlet.http.HttpServletRequest
}
