import sbt._

/** One row of python/aqepilot/spark_versions.csv: a Spark minor on a Scala binary version.
  *
  * @param published the newest patch on Maven, which can lag behind pyspark's
  * @param pysparkJars those of the newest patch in .envs/: what users run, so what is compiled against
  */
final case class SparkRow(
    minor: String,
    scalaBinary: String,
    newest: String,
    role: String,
    published: Option[String],
    pysparkJars: Seq[File]
) {
  def name: String = s"${minor}_$scalaBinary"

  def projectId: String = "aqepilot" + SparkAxis(minor).idSuffix + scalaBinary.replace('.', '_')

  /** What Maven is asked for: where no pyspark carries this row's Scala, or where there is none yet. */
  def mavenSpark: Option[String] = if (pysparkJars.isEmpty) published else None

  /** The Spark that is compiled against; none where neither has it. */
  def spark: Option[String] = mavenSpark.orElse(if (pysparkJars.isEmpty) None else Some(newest))

  def whatToDo: String =
    s"Spark $minor: no pyspark $newest in .envs/, and none on Maven. Run `make env`, then reload sbt"

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

  /** The Scala that Spark itself runs on. */
  def scalaVersion: String =
    pysparkJars
      .map(_.getName)
      .collectFirst { case SparkRow.ScalaLibrary(version) => version }
      .getOrElse(if (isShippedFromMaven) SparkRow.DefaultScala(scalaBinary)
      else SparkRow.NewestScala(scalaBinary))

  private def isShippedFromMaven: Boolean = role == SparkRow.Jvm

  private def number: Int = SparkRow.number(minor)
}

object SparkRow {
  private val Range = """spark-(\d+\.\d+)(\+|-\d+\.\d+)?""".r
  private val ScalaLibrary = """scala-library-(.*)\.jar""".r
  private val Jvm = "jvm"
  val DefaultScala = Map("2.12" -> "2.12.18", "2.13" -> "2.13.16")
  // sbt refuses to compile with an older Scala than the library that Spark brings.
  private val NewestScala = DefaultScala + ("2.13" -> "2.13.18")

  private def number(minor: String): Int = {
    val Array(major, rest) = minor.split('.').map(_.toInt)
    major * 1000 + rest
  }

  def readAll(root: File): Seq[SparkRow] = {
    val csv = root / "python/aqepilot/spark_versions.csv"
    val onMaven = SparkSuites.readAll(root / "tests/spark_suites/published.csv").map(p =>
      p.minor -> p.spark
    ).toMap
    IO.readLines(csv).drop(1).filter(_.nonEmpty).map(_.split(",", -1)).map {
      case Array(minor, scala, newest, _, Jvm) =>
        SparkRow(minor, scala, newest, Jvm, Some(newest), Nil)
      case Array(minor, scala, newest, _, role) =>
        val packages = root / ".envs" / s"spark-$newest" / "lib" * "python*" / "site-packages"
        val jars = packages / "pyspark" / "jars" * "*.jar"
        SparkRow(minor, scala, newest, role, onMaven.get(minor), jars.get.sortBy(_.getName))
      case bad => sys.error(s"$csv: 5 columns wanted, found ${bad.mkString(",")}")
    }
  }

  /** The row that an editor opens, and `sbt compile`: the one that is asked for, or the newest at hand.
    *
    * @param asked `3.5` or `3.5_2.13`
    */
  def ofEditor(rows: Seq[SparkRow], asked: Option[String]): SparkRow = asked match {
    case Some(name) =>
      rows.find(row => row.name == name || row.minor == name).getOrElse(
        sys.error(
          s"-Daqepilot.spark=$name: no such row. Use one of ${rows.map(_.name).mkString(", ")}"
        )
      )
    case None =>
      val atHand = rows.filter(_.pysparkJars.nonEmpty)
      (if (atHand.isEmpty) rows.filter(_.spark.nonEmpty) else atHand).last
  }
}

/** Spark as an axis of the project matrix. */
final case class SparkAxis(minor: String) extends VirtualAxis.WeakAxis {
  def idSuffix: String = s"-spark-${minor.replace('.', '_')}_"
  def directorySuffix: String = s"-spark-$minor"
}
