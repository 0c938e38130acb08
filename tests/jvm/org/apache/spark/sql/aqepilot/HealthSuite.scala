package org.apache.spark.sql.aqepilot

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.decision._

class HealthSuite extends AnyFunSuite {

  Seq(
    "3.5.9" -> "3.5",
    "3.5.6-amzn-1" -> "3.5",
    "3.5.3.0-fabric" -> "3.5",
    "4.0.0-dataproc" -> "4.0",
    "4.3.0-SNAPSHOT" -> "4.3"
  ).foreach { case (version, minor) =>
    test(s"the minor of $version is $minor") {
      assert(Health.minorOf(version) === minor)
    }
  }

  test("this jar fits the Spark it was compiled against") {
    assert(Health.build.sparkMinor === Health.minorOf(SPARK_VERSION))
    DecisionPoints.all.foreach(p => assert(Health.reasonOff(p) === None, p.name))
  }

  test("a class or a method that a vendor took away is named") {
    assert(Health.missing(Seq(Need("java.lang.String", Some("length")))) === Nil)
    assert(
      Health.missing(
        Seq(Need("org.apache.spark.Gone"), Need("java.lang.String", Some("gone")))
      ) ===
        Seq("org.apache.spark.Gone", "java.lang.String.gone")
    )
  }

  test(
    "a point that comes to what this Spark lacks is off from then on, and after no other fault"
  ) {
    val point = new DecisionPoint {
      override val name = "tried"
      override val (builtIn, summary, asked, answerMeaning) = ("", "", "", "")
      override val facts: StructType = StructType(Nil)
      override val answer: DataType = StringType
      override val needs: Seq[Need] = Nil
      override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict =
        Verdict(None, Reason.NullAnswer)
    }
    Health.after(new IllegalStateException("why"), point)
    assert(Health.isLive(point))
    Health.after(new NoSuchMethodError("gone"), point)
    assert(!Health.isLive(point))
    assert(
      Health.reasonOff(point) ===
        Some(s"this Spark ($SPARK_VERSION) does not fit: NoSuchMethodError: gone")
    )
  }
}
