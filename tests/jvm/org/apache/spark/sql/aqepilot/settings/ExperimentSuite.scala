package org.apache.spark.sql.aqepilot.settings

import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.scalatest.funsuite.AnyFunSuite

/** The cases of tests/cases/assignment.json, which Python's assignment is held to as well. */
class ExperimentSuite extends AnyFunSuite {

  private lazy val cases =
    new ObjectMapper().readTree(getClass.getResource("/assignment.json"))

  test("a unit has the number and the arm that Python gives it") {
    val all = cases.path("cases").elements.asScala.toSeq
    assert(all.size >= 20)
    all.foreach { c =>
      def text(name: String) = c.path(name).asText
      val arms = Experiment.parseArms(text("arms")).toOption.get
      val experiment = Experiment(text("experiment"), arms, Experiment.JobRun, text("salt"))
      val number = Experiment.bucket(text("salt"), text("experiment"), text("unit"))
      assert(number === c.path("bucket").asInt, c)
      assert(experiment.armOf(text("unit")).name === text("arm"), c)
    }
  }

  test("a million units have the numbers that Python gives them") {
    val million = cases.path("million")
    val digest = MessageDigest.getInstance("SHA-256")
    (0 until 1000000).foreach { i =>
      val number = Experiment.bucket(
        million.path("salt").asText,
        million.path("experiment").asText,
        s"job${i % 200}|run$i"
      )
      digest.update((number >> 8).toByte)
      digest.update(number.toByte)
    }
    assert(digest.digest.map(b => f"$b%02x").mkString === million.path("sha256").asText)
  }

  test("arms that are wrong are told as Python tells them, all at once") {
    Seq(
      "spark:90,a:20" -> "the weights are 110 percent together, not 100",
      "spark:90,a:9.99" -> "the weights are 99.99 percent together, not 100",
      "spark:100" -> "an experiment has two or three arms, not 1",
      "spark:40,a:20,b:20,c:20" -> "an experiment has two or three arms, not 4",
      "a:50,a:50" -> "arm a is there twice",
      "spark:50,spark+a:50" -> "spark is an arm of its own: no policy stands beside it",
      "spark:50,A:50" -> ("'A:50' is no arm: it has to be <policies>:<percent>, such as sales:90, " +
        "sales+skew:10 or spark:50"),
      "" -> ("'' is no arm: it has to be <policies>:<percent>, such as sales:90, sales+skew:10 or " +
        "spark:50")
    ).foreach { case (text, says) => assert(Experiment.parseArms(text) === Left(Seq(says))) }
    assert(Experiment.parseArms("a,b,c:10,c:10").left.toOption.get.size === 3)
  }

  test("an arm is policies in the order in which they are asked, or plain Spark") {
    val arms = Experiment.parseArms("spark:90, sales+skew : 10").toOption.get
    assert(arms === Seq(Arm("spark", 9000), Arm("sales+skew", 1000)))
    assert(arms.map(_.policies) === Seq(Nil, Seq("sales", "skew")))
  }
}
