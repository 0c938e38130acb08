import sbt._

/** One row of python/aqepilot/spark_versions.csv: a Spark minor on a Scala binary version. */
final case class SparkRow(minor: String, scalaBinary: String, newest: String, role: String) {

  /** No pyspark carries this row's Scala: its jars come from Maven. */
  def fromMaven: Boolean = role == "jvm"

  /** Spark 3.5 still runs on Java 8; every 4.x needs Java 17. */
  def bytecode: String = if (minor.startsWith("3.")) "8" else "17"

  /** Does a shim folder named `spark-4.0`, `spark-3.5-4.2` or `spark-4.0+` hold this minor? */
  def isIn(folder: String): Boolean = folder match {
    case SparkRow.Range(from, "+")  => SparkRow.number(from) <= number
    case SparkRow.Range(from, null) => from == minor
    case SparkRow.Range(from, to)   =>
      SparkRow.number(from) <= number && number <= SparkRow.number(to.drop(1))
    case other =>
      sys.error(
        s"jvm/src/main/$other: not a range of Spark minors. " +
          "Name it spark-<minor>, spark-<from>-<to> or spark-<from>+"
      )
  }

  /** The jars of the newest patch's pyspark: what users run, so what we compile against. */
  def pysparkJars(root: File): Seq[File] =
    (root / ".envs" / s"spark-$newest" / "lib" ** "pyspark" / "jars" * "*.jar").get.sortBy(
      _.getName
    )

  /** The Scala that Spark itself runs on; the default serves rows whose jars are not there. */
  def scalaVersion(root: File): String =
    if (fromMaven) SparkRow.DefaultScala(scalaBinary)
    else
      pysparkJars(root)
        .map(_.getName)
        .collectFirst { case SparkRow.ScalaLibrary(version) => version }
        .getOrElse(SparkRow.DefaultScala(scalaBinary))

  private def number: Int = SparkRow.number(minor)
}

object SparkRow {
  private val Range = """spark-(\d+\.\d+)(\+|-\d+\.\d+)?""".r
  private val ScalaLibrary = """scala-library-(.*)\.jar""".r
  val DefaultScala = Map("2.12" -> "2.12.18", "2.13" -> "2.13.16")

  private def number(minor: String): Int = {
    val Array(major, rest) = minor.split('.').map(_.toInt)
    major * 1000 + rest
  }

  def readAll(csv: File): Seq[SparkRow] =
    IO.readLines(csv).drop(1).filter(_.nonEmpty).map(_.split(",", -1)).map {
      case Array(minor, scalaBinary, newest, _, role) => SparkRow(minor, scalaBinary, newest, role)
      case bad => sys.error(s"$csv: 5 columns wanted, found ${bad.mkString(",")}")
    }
}

/** Spark as an axis of the project matrix. */
final case class SparkAxis(minor: String) extends VirtualAxis.WeakAxis {
  def idSuffix: String = s"-spark-${minor.replace('.', '_')}_"
  def directorySuffix: String = s"-spark-$minor"
}
