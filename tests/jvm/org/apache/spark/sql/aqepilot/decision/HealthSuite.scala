package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.SPARK_VERSION
import org.scalatest.funsuite.AnyFunSuite

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
    assert(DecisionPoints.all.map(_.name) === DecisionPoints.names)
    DecisionPoints.names.foreach(name => assert(Health.reasonOff(name) === None, name))
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
    val point = "tried"
    Health.after(new IllegalStateException("why"), point)
    assert(Health.isLive(point))
    Health.after(new NoSuchMethodError("gone"), point)
    assert(!Health.isLive(point))
    assert(
      Health.reasonOff(point) ===
        Some(s"this Spark ($SPARK_VERSION) does not fit: NoSuchMethodError: gone")
    )
  }

  private def at[T <: Throwable](fault: T, classes: String*): T = {
    fault.setStackTrace(classes.map(new StackTraceElement(_, "run", null, -1)).toArray)
    fault
  }

  private val ours = "org.apache.spark.sql.aqepilot.points.skew_join.SkewLegality"
  private val sparks = "org.apache.spark.sql.execution.SparkPlan"
  private val users = "com.acme.Source"

  Seq(
    "what a user's data source cannot link" ->
      at(new NoSuchMethodError("'void org.apache.spark.sql.Gone.of()'"), users, sparks, ours),
    "a user's class of a method less than this Spark asks for" -> at(
      new AbstractMethodError(
        s"Receiver class $users does not define or inherit an implementation of the resolved method " +
          "'abstract java.lang.String description()' of interface org.apache.spark.sql.connector.read.Scan."
      ),
      sparks,
      ours
    ),
    "a user's class that is missing where Spark loads another of theirs" -> at(
      new NoClassDefFoundError("com/acme/Dependency"),
      "java.lang.Class",
      "org.apache.spark.util.Utils",
      ours
    ),
    "the failed start of a user's class" -> {
      val fault = new ExceptionInInitializerError(at(new IllegalStateException, users, sparks))
      at(fault, "java.lang.Class", sparks, ours)
    },
    "a connector's class in a package of Spark's" ->
      at(
        new NoSuchMethodError("'void org.apache.spark.sql.Gone.of()'"),
        "org.apache.spark.sql.acme.Scan",
        ours
      )
  ).foreach { case (what, fault) =>
    test(s"no point is off for the driver's life after $what") {
      Health.after(fault, what)
      assert(Health.isLive(what))
    }
  }

  Seq(
    "our code" -> at(
      new NoSuchMethodError("'void org.apache.spark.sql.Gone.of()'"),
      "java.lang.Object",
      ours
    ),
    "our code, by a name alone" -> at(new NoSuchFieldError("MODULE$"), ours),
    "Spark's own" -> at(new NoClassDefFoundError("org/apache/spark/sql/Gone"), sparks, ours),
    "Spark's own, of a class of ours" -> at(
      new AbstractMethodError(
        "Receiver class org.apache.spark.sql.aqepilot.plans.promises.FinalStage$ does not define or inherit an " +
          "implementation of the resolved method 'abstract void more()' of abstract class " +
          "org.apache.spark.sql.catalyst.rules.Rule."
      ),
      sparks
    ),
    "the start of an object of ours" -> {
      val fault = new ExceptionInInitializerError(at(new IllegalStateException, ours, sparks))
      at(fault, ours)
    }
  ).foreach { case (what, fault) =>
    test(s"a point is off where this cannot be linked: $what") {
      Health.after(fault, what)
      assert(!Health.isLive(what))
    }
  }
}
