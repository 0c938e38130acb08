// One row per line of python/aqepilot/spark_versions.csv, all from one source tree.
// A row's jar: sbt aqepilot-spark-<minor>_<scala>/jar (dots as underscores). All of them: sbt jars
// Spark comes from the row's pyspark in .envs/ (make env), else from Maven.

val base = file(".").getAbsoluteFile
val rows = SparkRow.readAll(base)
// Editors would compile each file for each Spark: they see one. Another: -Daqepilot.spark=3.5
val ofEditor = SparkRow.ofEditor(rows, sys.props.get("aqepilot.spark"))
val jar = taskKey[File]("packages this row's jar into python/aqepilot/jars")
val jars = taskKey[Seq[File]]("packages every row's jar into python/aqepilot/jars")
val maven = taskKey[Unit]("publishes every row's jar into target/sona-staging")
val testRun = taskKey[File]("compiles this row's suites; writes the words after java that run them")
// IntelliJ's own key: its import finds it by its name.
val ideSkipProject =
  settingKey[Boolean]("IntelliJ leaves this project out").withRank(KeyRanks.Invisible)

ThisBuild / scalaVersion := ofEditor.scalaVersion
ThisBuild / organization := "io.aqepilot"
ThisBuild / version := {
  val about = IO.read(base / "python/aqepilot/__about__.py")
  """__version__ = "(.+)"""".r.findFirstMatchIn(about).get.group(1)
}

def inEditors(isShown: Boolean): Seq[Setting[_]] =
  Seq(bspEnabled := isShown, ideSkipProject := !isShown)

def settingsOf(row: SparkRow): Seq[Setting[_]] = Seq(
  name := s"aqepilot-spark-${row.minor}",
  Compile / unmanagedSourceDirectories := (base / "jvm/src/main/scala") +:
    (base / "jvm/src/main" * "spark-*").get.filter(folder => row.isIn(folder.getName)),
  Compile / unmanagedResourceDirectories := Seq(base / "jvm/src/main/resources"),
  Test / unmanagedSourceDirectories := Seq(base / "tests/jvm"),
  Test / unmanagedResourceDirectories := Seq(base / "tests/cases", base / "project/test-resources"),
  Compile / unmanagedJars := {
    if (row.spark.isEmpty) sys.error(row.whatToDo)
    row.pysparkJars.classpath
  },
  // Spark's own jars carry the Scala library; a second one would hide it from the tests.
  autoScalaLibrary := row.mavenSpark.nonEmpty,
  scalaModuleInfo ~= (_.map(_.withOverrideScalaVersion(false))),
  libraryDependencies ++=
    row.mavenSpark.toSeq.map(spark => "org.apache.spark" %% "spark-sql" % spark % Provided),
  scalacOptions ++= Seq("-release", row.bytecode),
  // Not by sbt: it waits for ever where the reporter in its fork is lost.
  testRun := {
    val part = s"test-jvm-${row.minor}_${row.scalaBinary}"
    val classPath = (Test / fullClasspath).value.files.mkString(java.io.File.pathSeparator)
    val words = (Test / javaOptions).value ++ Seq("-cp", classPath, "org.scalatest.tools.Runner") ++
      Seq("-R", (Test / classDirectory).value.getPath, "-oDFW", "-u", s"target/junit/$part")
    val file = base / "target" / s"$part.args"
    IO.writeLines(file, words.map(word => "\"" + word.replace("\\", "\\\\") + "\""))
    file
  },
  Compile / resourceGenerators += Def.task {
    val file = (Compile / resourceManaged).value / "aqepilot-build.properties"
    IO.write(
      file,
      s"""version=${version.value}
         |spark_minor=${row.minor}
         |spark_built_for=${row.spark.get}
         |scala=${row.scalaBinary}
         |""".stripMargin
    )
    Seq(file)
  }.taskValue,
  // The worker's source goes where the jar is; Python imports it from there.
  Compile / resourceGenerators += Def.task {
    val file = (Compile / resourceManaged).value / "aqepilot_worker.py"
    IO.copyFile(base / "python/aqepilot/worker.py", file)
    Seq(file)
  }.taskValue,
  jar := {
    val built = (Compile / packageBin).value
    val folder = base / "python/aqepilot/jars"
    val shipped = folder / s"${name.value}_${row.scalaBinary}-${version.value}.jar"
    val older = (folder * s"${name.value}_${row.scalaBinary}-*.jar").get.filter(_ != shipped)
    IO.delete(older)
    IO.copyFile(built, shipped)
    streams.value.log.info(s"python/aqepilot/jars/${shipped.getName}")
    shipped
  }
)

lazy val aqepilot =
  rows.foldLeft(projectMatrix.in(file("jvm")).defaultAxes(VirtualAxis.jvm).settings(common)) {
    (matrix, row) =>
      matrix.customRow(
        scalaVersions = Seq(row.scalaVersion),
        axisValues = Seq(SparkAxis(row.minor), VirtualAxis.jvm),
        process = _.settings(settingsOf(row), Published.settings(base), inEditors(row == ofEditor))
      )
  }

// What sbt's tasks mean without a project's name: the row that an editor opens.
lazy val root = project
  .in(file("."))
  .aggregate(LocalProject(ofEditor.projectId))
  .settings(
    inEditors(false),
    jars := rows.map(row => LocalProject(row.projectId) / jar).join.value,
    maven := rows.map(row => LocalProject(row.projectId) / publish).join.map(_ => ()).value,
    publish / skip := true,
    onLoadMessage := s"Spark ${ofEditor.spark.getOrElse(ofEditor.whatToDo)}" +
      s"${if (ofEditor.mavenSpark.isEmpty) "" else " from Maven"}: ${ofEditor.projectId}"
  )

// Never compiled: it hands scalafmt every source once, not once a row.
lazy val scalaSources = project
  .in(file("target/sources"))
  .settings(
    Compile / unmanagedSourceDirectories := Seq(base / "jvm/src/main", base / "tests/jvm"),
    Compile / sources := Nil,
    inEditors(false)
  )

// The class paths of Spark's own suites, one jar a line: make spark-suites
val classPath = taskKey[File]("writes the class path of Spark's own suites")
lazy val sparkSuites = new CompositeProject {
  def componentProjects: Seq[Project] =
    SparkSuites.readAll(base / "tests/spark_suites/published.csv").map { published =>
      val folder = base / "target/spark-suites" / published.minor
      Project(published.id, folder / "build").settings(
        scalaVersion := SparkRow.DefaultScala(published.scalaBinary),
        autoScalaLibrary := false,
        libraryDependencies ++= published.libraries,
        inEditors(false),
        classPath := {
          val file = folder / "classpath.txt"
          IO.writeLines(file, (Compile / externalDependencyClasspath).value.files.map(_.getPath))
          file
        }
      )
    }
}

lazy val common = Seq(
  scalacOptions ++= Seq(
    "-encoding",
    "utf8",
    "-deprecation",
    "-feature",
    "-unchecked",
    "-Xlint:_,-unused"
  ),
  libraryDependencies += "org.scalatest" %% "scalatest" % "3.2.20" % Test,
  Compile / packageBin / packageOptions += Package.ManifestAttributes("License" -> "Apache-2.0"),
  Test / fork := true,
  Test / forkOptions := (Test / forkOptions).value.withWorkingDirectory(base),
  // What runs a few times is not worth a second compiler: it took a third of the suites' CPU time.
  Test / javaOptions ++= Seq(
    "-Xmx2g",
    "-Xss4m",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=240m",
    "-XX:+UseSerialGC"
  ) ++ sparkOpens,
  Test / envVars += "SPARK_LOCAL_IP" -> "127.0.0.1",
  Test / testOptions += Tests.Argument(TestFrameworks.ScalaTest, "-oDF"),
  Test / definedTests := {
    val found = (Test / definedTests).value
    if (found.isEmpty) sys.error("tests/jvm holds no test")
    found
  }
)

// What Spark's own launcher opens on Java 17 and later.
lazy val sparkOpens = Seq(
  "java.lang",
  "java.lang.invoke",
  "java.lang.reflect",
  "java.io",
  "java.net",
  "java.nio",
  "java.util",
  "java.util.concurrent",
  "java.util.concurrent.atomic",
  "sun.nio.ch",
  "sun.nio.cs",
  "sun.security.action",
  "sun.util.calendar"
).map(name => s"--add-opens=java.base/$name=ALL-UNNAMED")
