package org.apache.spark.sql.aqepilot.policy.python

import org.apache.spark.sql.aqepilot.policy.PolicyError

/** What a policy's text says of a Python function. */
sealed trait PythonText {
  def text: String
}

/** `python:<module>:<function>` */
final case class ImportedFunction(text: String, module: String, function: String) extends PythonText

/** `python:pickled:<name>:<sha256>`: one that [[SessionFunctions]] keeps. */
final case class PickledFunction(text: String, hash: String) extends PythonText

object PythonText {

  private val Prefix = "python:"
  private val Name = "[A-Za-z_]\\w*"
  private val Dotted = s"$Name(?:\\.$Name)*"
  private val Imported = s"python:($Dotted):($Dotted)".r
  private val Pickled = "python:pickled:([^:]+):([0-9a-f]{64})".r

  /** Asked of every text at each ask: copies nothing. */
  def is(text: String): Boolean =
    text != null && text.startsWith(Prefix, text.indexWhere(_ > ' '))

  def of(text: String): Either[PolicyError, PythonText] = text.trim match {
    case Pickled(_, hash)           => Right(PickledFunction(text.trim, hash))
    case Imported(module, function) => Right(ImportedFunction(text.trim, module, function))
    case other                      =>
      Left(
        PolicyError(
          PolicyError.PythonText,
          s"'${other.take(200)}' names no Python function: write python:<module>:<function>, as in " +
            "python:sales.policies:choose.",
          Some(1),
          Some(1),
          Nil
        )
      )
  }

  def pickled(name: String, hash: String): String =
    s"${Prefix}pickled:${name.replaceAll("[^\\w.<>]", "_").take(100)}:$hash"
}
