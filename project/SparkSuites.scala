import sbt._
import sbt.Keys._

/** One row of tests/spark_suites/published.csv: a Spark whose own tests are on Maven.
  *
  * The libraries are those that Spark's parent pom of that version names for its tests.
  */
final case class SparkSuites(
    minor: String,
    scalaBinary: String,
    spark: String,
    scalatest: String,
    scalacheck: String,
    mockito: String
) {
  def id: String = s"spark-suites-${minor.replace('.', '_')}"

  def libraries: Seq[ModuleID] = Seq(
    "org.apache.spark" %% "spark-sql" % spark,
    "org.apache.spark" %% "spark-sql" % spark classifier "tests",
    "org.apache.spark" %% "spark-catalyst" % spark classifier "tests",
    "org.apache.spark" %% "spark-core" % spark classifier "tests",
    "org.apache.spark" %% "spark-tags" % spark classifier "tests",
    "org.scalatest" %% "scalatest" % scalatest,
    "org.scalatestplus" %% s"scalacheck-$scalacheck" % s"$scalatest.0",
    "org.scalatestplus" %% s"mockito-$mockito" % s"$scalatest.0"
  ) ++ (if (minor.startsWith("3.")) Nil
        else Seq("org.apache.spark" %% "spark-sql-api" % spark classifier "tests"))
}

object SparkSuites {
  def readAll(csv: File): Seq[SparkSuites] =
    IO.readLines(csv).drop(1).filter(_.nonEmpty).map(_.split(",", -1)).map {
      case Array(minor, scala, spark, scalatest, scalacheck, mockito) =>
        SparkSuites(minor, scala, spark, scalatest, scalacheck, mockito)
      case bad => sys.error(s"$csv: 6 columns wanted, found ${bad.mkString(",")}")
    }
}
