package org.apache.spark.sql.aqepilot.policy.python

import java.io.File

import org.apache.spark.SparkContext
import org.apache.spark.api.python.PythonUtils

/** Which Python the driver uses, and where that imports from. */
private[python] object DriverPython {

  /** `--py-files` (of a module the folder, as in `PythonRunner.resolvePyFiles`), pyspark itself, and the working
    * directory last.
    */
  def path(sc: SparkContext): Seq[String] =
    sc.conf.get("spark.submit.pyFiles", "").split(",").toSeq.filter(_.nonEmpty).map { entry =>
      val file = if (entry.startsWith("file:")) new java.net.URI(entry).getPath else entry
      if (file.endsWith(".py")) new File(file).getAbsoluteFile.getParent else file
    } ++ PythonUtils.sparkPythonPath.split(File.pathSeparator).toSeq.filter(_.nonEmpty) :+
      new File(".").getAbsoluteFile.getParent

  /** As `PythonRunner` finds the driver's; a notebook's front end is no interpreter.
    *
    * @param sessions
    *   the interpreter of the session that brought a function
    */
  def interpreter(sc: SparkContext, sessions: => Option[String]): String =
    sc.conf
      .getOption("spark.pyspark.driver.python")
      .orElse(sc.conf.getOption("spark.pyspark.python"))
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON").filterNot(isFrontEnd))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .orElse(sessions)
      .getOrElse("python3")

  private def isFrontEnd(python: String): Boolean = {
    val name = new File(python.trim.split("\\s+").head).getName
    name.startsWith("jupyter") || name.startsWith("ipython")
  }
}
