package org.apache.spark.sql.aqepilot.spark

/** A release of Spark by its numbers; what vendors append to them is left out. */
final case class SparkRelease(major: Int, minor: Int, patch: Int) extends Ordered[SparkRelease] {

  override def compare(other: SparkRelease): Int =
    Ordering[(Int, Int, Int)].compare(
      (major, minor, patch),
      (other.major, other.minor, other.patch)
    )

  def isSameMinor(other: SparkRelease): Boolean = major == other.major && minor == other.minor

  override def toString: String = s"$major.$minor.$patch"
}

object SparkRelease {

  private val Numbers = """(\d+)\.(\d+)(?:\.(\d+))?.*""".r

  /** The release of a version such as `3.5.0-amzn-1`; none where it has no numbers. */
  def parse(version: String): Option[SparkRelease] = version match {
    case Numbers(major, minor, patch) =>
      Some(SparkRelease(major.toInt, minor.toInt, Option(patch).fold(0)(_.toInt)))
    case _ => None
  }
}
