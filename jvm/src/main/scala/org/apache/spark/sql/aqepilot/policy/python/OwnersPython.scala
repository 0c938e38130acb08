package org.apache.spark.sql.aqepilot.policy.python

import java.io.File

import org.apache.spark.SparkContext
import org.apache.spark.api.python.PythonUtils

/** The Python that an owner's functions run in: which one it is, and where it imports from. */
final private[python] class OwnersPython(sc: SparkContext, owner: PythonOwner) {

  private val token: Option[String] = owner match {
    case PythonOwner.Session(token) => Some(token)
    case _                          => None
  }

  /** What a session brought for a function. */
  def brought(function: PythonFunction): Option[SessionFunction] =
    token.flatMap(SessionFunctions.ofDriver.get(_, function.text.text))

  /** For `sys.path`: what the session brought, `--py-files` (of a module the folder, as in
    * `PythonRunner.resolvePyFiles`), pyspark itself, and the working directory last.
    */
  def path(function: PythonFunction): Seq[String] =
    (brought(function).fold(Seq.empty[String])(_.path) ++ driversPath).distinct

  private def driversPath: Seq[String] =
    sc.conf.get("spark.submit.pyFiles", "").split(",").toSeq.filter(_.nonEmpty).map { entry =>
      val file = if (entry.startsWith("file:")) new java.net.URI(entry).getPath else entry
      if (file.endsWith(".py")) new File(file).getAbsoluteFile.getParent else file
    } ++ PythonUtils.sparkPythonPath.split(File.pathSeparator).toSeq.filter(_.nonEmpty) :+
      new File(".").getAbsoluteFile.getParent

  /** As `PythonRunner` finds the driver's, else that of the session which brought functions; a notebook's front end
    * is no interpreter.
    */
  def interpreter: String =
    sc.conf
      .getOption("spark.pyspark.driver.python")
      .orElse(sc.conf.getOption("spark.pyspark.python"))
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON").filterNot(isFrontEnd))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .orElse(token.flatMap(SessionFunctions.ofDriver.python))
      .getOrElse("python3")

  private def isFrontEnd(python: String): Boolean = {
    val name = new File(python.trim.split("\\s+").head).getName
    name.startsWith("jupyter") || name.startsWith("ipython")
  }
}
