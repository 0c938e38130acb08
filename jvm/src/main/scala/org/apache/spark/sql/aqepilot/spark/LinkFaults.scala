package org.apache.spark.sql.aqepilot.spark

import scala.util.Try

/** Whose code it is that the JVM cannot link: ours and Spark's, or that of users and other extensions, which is
  * called from our rules too.
  */
private[aqepilot] object LinkFaults {

  private val Ours = Seq(
    "io.aqepilot.",
    "org.apache.spark.sql.aqepilot.",
    "org.apache.spark.sql.execution.aqepilot.",
    "org.apache.spark.sql.execution.adaptive.AqePilot"
  )
  private val Jdk = Seq("java.", "javax.", "jdk.", "sun.", "com.sun.")
  private val Common = Jdk ++ Seq("scala.", "org.apache.spark.") ++ Ours

  // A name of a class, as the messages of link errors have it: with at least two packages, or one of the JDK's.
  private val Name = "(?:[a-z_][\\w$]*[./])+[A-Za-z_$][\\w$]*".r
  private val Receiver = "Receiver class (\\S+)".r.unanchored

  /** Whether our code or Spark's own named what cannot be linked, and that is no class of somebody else's. */
  def areOursOrSparks(e: LinkageError): Boolean = e match {
    case start: ExceptionInInitializerError =>
      isAtOurs(start) && Option(start.getCause).forall(isAtOurs)
    case _ =>
      val isForeign = Option(e.getMessage).exists {
        case Receiver(name) => !isCommon(name)
        case message => !frame(e).exists(isOurs) && Name.findAllIn(message).exists(!isCommon(_))
      }
      isAtOurs(e) && !isForeign
  }

  private def isAtOurs(e: Throwable): Boolean =
    frame(e).exists(name => isOurs(name) || isSparks(name))

  /** The class whose code threw it, or called what of the JDK did. */
  private def frame(e: Throwable): Option[String] =
    e.getStackTrace.iterator.map(_.getClassName).find(name => !Jdk.exists(name.startsWith))

  private def isOurs(name: String): Boolean = Ours.exists(name.startsWith)

  private def isCommon(name: String): Boolean = {
    val dotted = name.replace('/', '.')
    Common.exists(dotted.startsWith)
  }

  /** Connectors have packages within Spark's: what is Spark's own is in one of its jars. */
  private def isSparks(name: String): Boolean =
    name.startsWith("org.apache.spark.") && sourceOf(name).exists(sparksSources.contains)

  private lazy val sparksSources: Set[String] = Seq(
    "org.apache.spark.SparkContext",
    "org.apache.spark.SparkException",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.Row",
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.sql.execution.SparkPlan",
    "org.apache.spark.unsafe.types.UTF8String"
  ).flatMap(sourceOf).toSet

  private def sourceOf(name: String): Option[String] = Try {
    val loaded = Class.forName(name, false, getClass.getClassLoader)
    loaded.getProtectionDomain.getCodeSource.getLocation.toString
  }.toOption
}
