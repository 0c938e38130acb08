package org.apache.spark.sql.aqepilot.decision

import java.util.Properties
import java.util.concurrent.ConcurrentHashMap

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.spark.{FailOpen, LinkFaults}

/** What this jar was built for, from the resource that the build writes into it. */
final case class Build(version: String, sparkMinor: String, sparkBuiltFor: String, scala: String)

/** Whether this jar and the running Spark fit, found out when the extension loads, and where something that was
  * not looked for cannot be linked.
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
    val there = new java.util.ArrayList[String]()
    Try {
      val all = getClass.getClassLoader.getResources(Resource)
      while (all.hasMoreElements) there.add(all.nextElement().toString)
    }
    there
      .toArray(Array.empty[String])
      .toSeq
      .map(_.stripPrefix("jar:").stripPrefix("file:").stripSuffix("!/" + Resource))
      .distinct
  }

  /** The minor of a Spark version, vendors' suffixes included: 3.5.6-amzn-1 gives 3.5. */
  def minorOf(version: String): String = version.split("[^0-9]+").take(2).mkString(".")

  /** The version of the running Spark; empty where it does not tell. */
  lazy val sparkVersion: String = FailOpen("health", "")(SPARK_VERSION)

  /** Why this jar is not the running Spark's; None when it is, or nobody can tell. */
  lazy val wrongJar: Option[String] = {
    val running = minorOf(sparkVersion)
    if (Seq("unknown", running).contains(build.sparkMinor) || running.isEmpty) None
    else
      Some(
        s"this jar was built for Spark ${build.sparkMinor} and Spark $sparkVersion is running: take the " +
          s"one that `aqepilot jar --spark $running` names"
      )
  }

  /** Whether the jar was built for the Spark that is running. */
  def isRightJar: Boolean = wrongJar.isEmpty

  private lazy val off: Map[String, String] = DecisionPoints.names.flatMap { name =>
    wrongJar
      .orElse(unlinkable.get(name))
      .orElse(DecisionPoints.named(name).flatMap(unmet))
      .map(name -> _)
  }.toMap

  /** Of points whose classes cannot be linked. */
  private lazy val unlinkable: Map[String, String] = DecisionPoints.faults.map {
    case (name, fault) =>
      val why = unfit(fault)
      FailOpen.problem(pointOff(name, why))
      name -> why
  }

  /** Whether a point's classes could be linked: where they could not, no code may refer to the point. */
  def isLinked(name: String): Boolean = !unlinkable.contains(name)

  /** Of points that came to what cannot be linked. */
  private val unlinked = new ConcurrentHashMap[String, String]()

  /** Why the point of that name is off in this Spark; None when it is live. */
  def reasonOff(name: String): Option[String] =
    off.get(name).orElse(Option(unlinked.get(name)))

  /** Whether the point of that name works in this Spark. */
  def isLive(name: String): Boolean =
    (off.isEmpty && unlinked.isEmpty) || reasonOff(name).isEmpty

  /** Switches points off for the driver's life where their fault is that this Spark lacks something: the JVM links
    * it no better the next time. Other faults change nothing: what a user's data source or function cannot link is
    * the failure of the one ask that came to it.
    *
    * @param points
    *   their names
    */
  def after(fault: Throwable, points: String*): Unit = fault match {
    case e: LinkageError if LinkFaults.areOursOrSparks(e) =>
      points.foreach(unlinked.putIfAbsent(_, unfit(e)))
    case _ =>
  }

  private def unfit(e: Throwable): String =
    s"this Spark ($sparkVersion) does not fit: ${FailOpen.short(e)}"

  private def unmet(point: DecisionPoint[_]): Option[String] =
    try {
      val lacks = missing(point.needs)
      if (lacks.isEmpty) None
      else Some(lacks.mkString(s"this Spark ($sparkVersion) lacks ", ", ", ""))
    } catch {
      case e: LinkageError => Some(unfit(e))
    }

  /** The needs that are not met, as class or class and method. */
  def missing(needs: Seq[Need]): Seq[String] =
    needs.filterNot(isThere).map(n => n.className + n.method.fold("")("." + _))

  private def isThere(need: Need): Boolean =
    Try {
      val c = Class.forName(need.className, false, getClass.getClassLoader)
      need.method.forall(m => c.getMethods.exists(_.getName == m))
    }.getOrElse(false)

  /** @param points
    *   names; a point of these that is off is a problem: there are policies for it
    */
  def problems(points: Set[String]): Seq[Problem] = {
    val twoJars =
      if (jars.size < 2) Nil
      else
        Seq(
          Problem(
            Problem.TwoJars,
            s"more than one aqepilot jar is on the class path; keep one of: ${jars.mkString(", ")}"
          )
        )
    val off = wrongJar match {
      case Some(why) => Seq(Problem(Problem.WrongSparkJar, why))
      case None      =>
        DecisionPoints.names.filter(points.contains).flatMap(problem)
    }
    twoJars ++ off
  }

  /** What is wrong where the point of that name is off. */
  def problem(point: String): Option[Problem] = reasonOff(point).map(pointOff(point, _))

  /** That the point of that name is off, and why. */
  def pointOff(point: String, why: String): Problem =
    Problem(Problem.PointOff, s"$point is off: $why", point = Some(point))
}
