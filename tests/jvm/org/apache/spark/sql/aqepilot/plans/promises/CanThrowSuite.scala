package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.analysis.SimpleAnalyzer
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, Expression}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

class CanThrowSuite extends AnyFunSuite {

  private val relation = LocalRelation(
    Seq(
      "i" -> IntegerType,
      "l" -> LongType,
      "d" -> DoubleType,
      "m" -> DecimalType(10, 2),
      "s" -> StringType,
      "day" -> DateType,
      "a" -> ArrayType(IntegerType),
      "ym" -> YearMonthIntervalType(),
      "dt" -> DayTimeIntervalType()
    ).map { case (name, dataType) => AttributeReference(name, dataType)() }
  )

  private def analysed(text: String, ansi: Boolean): Expression = {
    val conf = new SQLConf
    conf.setConfString("spark.sql.ansi.enabled", ansi.toString)
    SQLConf.withExistingConf(conf) {
      val project = Project(Seq(Alias(CatalystSqlParser.parseExpression(text), "x")()), relation)
      SimpleAnalyzer.execute(project) match {
        case p: Project => p.projectList.head.children.head
        case other      => fail(s"not a projection: $other")
      }
    }
  }

  private val always = Seq(
    "i = l AND s <=> upper(s) AND NOT (i > 3 OR l IS NULL)",
    "coalesce(i, 0) < CASE WHEN d > 1 THEN 2 ELSE l END",
    "i IN (1, 2, 3) AND if(s IS NULL, true, substring(s, 1, 2) = 'a')",
    "CAST(i AS BIGINT) = l AND CAST(i AS DECIMAL(20, 0)) > m",
    "d + 1 > d * 2 - 3 AND -d < abs(d)",
    "CAST(i AS STRING) = s AND CAST(m AS DOUBLE) > d",
    "date_add(day, i) > day AND year(day) = 2024",
    "i & 3 = 1 AND pmod(hash(i, s), 7) > 0",
    "i % 2 = 0 AND d / 2D > d % 3D",
    "startswith(s, 'a') OR length(trim(s)) > 2"
  )

  private val underAnsi = Seq(
    "i / l > 1",
    "d / (d - 1) > 1",
    "i / 2 > l / i",
    "i % l = 1",
    "m % 2 = 0",
    "l div 2 = 1",
    "i + 1 = l",
    "m * 2 > m",
    "-i = l",
    "abs(i) = l",
    "CAST(s AS INT) = i",
    "CAST(l AS INT) = i",
    "CAST(d AS INT) = i",
    "s = i"
  )

  private val anyhow =
    Seq(
      "a[i] = 1",
      "s LIKE s",
      "s RLIKE s",
      "element_at(a, i) = 1",
      // Spark's arithmetic of these is exact, with ANSI or without.
      "ym + ym > ym",
      "dt - dt = dt",
      "-ym = ym",
      "-dt = dt",
      "abs(ym) = ym",
      "abs(dt) = dt",
      "ym * 2 = ym",
      "dt * i = dt",
      "dt / i = dt",
      "CAST(day AS TIMESTAMP) > now()"
    )

  for (text <- always; ansi <- Seq(true, false))
    test(s"harmless, ANSI $ansi: $text")(assert(!CanThrow(analysed(text, ansi))))

  for (text <- underAnsi)
    test(s"throws under ANSI only: $text") {
      assert(CanThrow(analysed(text, ansi = true)))
      assert(!CanThrow(analysed(text, ansi = false)))
    }

  for (text <- anyhow; ansi <- Seq(true, false))
    test(s"not known to be harmless, ANSI $ansi: $text")(assert(CanThrow(analysed(text, ansi))))
}
