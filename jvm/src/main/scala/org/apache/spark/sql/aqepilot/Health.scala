package org.apache.spark.sql.aqepilot

import java.util.Properties

import scala.util.Try

import org.apache.spark.SPARK_VERSION

import io.aqepilot.decision.{DecisionPoint, DecisionPoints, Need, Problem}

/** What this jar was built for, from the resource that the build writes into it. */
final case class Build(version: String, sparkMinor: String, sparkBuiltFor: String, scala: String)

/** Whether this jar and the running Spark fit, found out once when the extension loads.
  *
  * Vendors ship changed Sparks: a point whose needs are not met is off, and the rest lives.
  */
object Health {

  private val Resource = "aqepilot-build.properties"

  val build: Build = {
    val p = new Properties()
    Option(getClass.getClassLoader.getResourceAsStream(Resource)).foreach { in =>
      try p.load(in)
      finally in.close()
    }
    def get(key: String) = p.getProperty(key, "unknown")
    Build(get("version"), get("spark_minor"), get("spark_built_for"), get("scala"))
  }

  /** Where this jar is, as a URL; a list of all when more than one is on the class path. */
  lazy val jars: Seq[String] = {
    val found = new java.util.ArrayList[String]()
    Try {
      val all = getClass.getClassLoader.getResources(Resource)
      while (all.hasMoreElements) found.add(all.nextElement().toString)
    }
    found
      .toArray(Array.empty[String])
      .toSeq
      .map(_.stripPrefix("jar:").stripPrefix("file:").stripSuffix("!/" + Resource))
      .distinct
  }

  /** The minor of a Spark version, vendors' suffixes included: 3.5.6-amzn-1 gives 3.5. */
  def minorOf(version: String): String = version.split("[^0-9]+").take(2).mkString(".")

  /** Why this jar is not the running Spark's; None when it is. */
  lazy val wrongJar: Option[String] = {
    val running = minorOf(SPARK_VERSION)
    if (build.sparkMinor == "unknown" || build.sparkMinor == running) None
    else
      Some(
        s"this jar was built for Spark ${build.sparkMinor} and Spark $SPARK_VERSION is running: take the " +
          s"one that `aqepilot jar --spark $running` names"
      )
  }

  /** Whether the jar was built for the Spark that is running. */
  def isRightJar: Boolean = wrongJar.isEmpty

  private lazy val off: Map[String, String] = DecisionPoints.all.flatMap { point =>
    wrongJar.orElse(unmet(point)).map(point.name -> _)
  }.toMap

  /** Why a point is off in this Spark; None when it is live. */
  def reasonOff(point: DecisionPoint): Option[String] = off.get(point.name)

  def isLive(point: DecisionPoint): Boolean = off.isEmpty || !off.contains(point.name)

  private def unmet(point: DecisionPoint): Option[String] =
    try {
      val lacks = missing(point.needs)
      if (lacks.isEmpty) None
      else Some(lacks.mkString(s"this Spark ($SPARK_VERSION) lacks ", ", ", ""))
    } catch {
      case e: LinkageError =>
        Some(s"this Spark ($SPARK_VERSION) does not fit: ${FailOpen.short(e)}")
    }

  /** The needs that are not met, as class or class and method. */
  def missing(needs: Seq[Need]): Seq[String] =
    needs.filterNot(isThere).map(n => n.className + n.method.fold("")("." + _))

  private def isThere(need: Need): Boolean =
    Try {
      val c = Class.forName(need.className, false, getClass.getClassLoader)
      need.method.forall(m => c.getMethods.exists(_.getName == m))
    }.getOrElse(false)

  /** @param set
    *   a point that is off is a problem where these have a policy for it
    */
  def problems(set: PolicySet): Seq[Problem] = {
    val twoJars =
      if (jars.size < 2) Nil
      else
        Seq(
          Problem(
            Problem.TwoJars,
            s"more than one aqepilot jar is on the class path; keep one of: ${jars.mkString(", ")}"
          )
        )
    val points = wrongJar match {
      case Some(why) => Seq(Problem(Problem.WrongSparkJar, why))
      case None      => off.toSeq.filter(p => set.policies.exists(_.point.name == p._1)).map {
          case (p, why) =>
            Problem(Problem.PointOff, s"$p is off: $why")
        }
    }
    twoJars ++ points
  }
}
