package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.reasons.Reason

/** Why and where a policy text is refused.
  *
  * @param code one of [[PolicyError.Codes]]
  * @param message what is wrong, what is allowed and what to do, without plans
  * @param line 1-based line within the text; None when unknown
  * @param column 1-based column within that line; None when unknown
  * @param suggestions nearest fact paths or function names, best first
  */
final case class PolicyError(
    code: String,
    message: String,
    line: Option[Int],
    column: Option[Int],
    suggestions: Seq[String]
) {

  /** Whether the same text may be good in a moment. */
  def isPassing: Boolean = code == PolicyError.CompilerBusy
}

object PolicyError {
  val Empty = "EMPTY"
  val TooLong = "TOO_LONG"
  val TooComplex = "TOO_COMPLEX"
  val CompilerBusy = "COMPILER_BUSY"
  val Syntax = "SYNTAX"
  val UnknownFact = "UNKNOWN_FACT"
  val UnknownField = "UNKNOWN_FIELD"
  val UnknownFunction = "UNKNOWN_FUNCTION"
  val FunctionNotAllowed = "FUNCTION_NOT_ALLOWED"
  val NotScalar = "NOT_SCALAR"
  val NotPure = "NOT_PURE"
  val WrongAnswerType = "WRONG_ANSWER_TYPE"
  val InvalidExpression = "INVALID_EXPRESSION"
  val ConstantFails = "CONSTANT_FAILS"
  val PythonText = "PYTHON_TEXT"
  val PythonNotAllowed = "PYTHON_NOT_ALLOWED"
  val PythonLoadFailed = "PYTHON_LOAD_FAILED"
  val InternalError = "INTERNAL_ERROR"

  /** Code and meaning, in the order in which a text is checked. */
  val Codes: Seq[(String, String)] = Seq(
    Empty -> "the text holds no expression",
    TooLong -> "the text is longer than 1 MiB of UTF-8",
    TooComplex -> "the text is nested too deeply, has too many parts or takes too long",
    CompilerBusy -> "other texts are being compiled; the text is tried again",
    Syntax -> "Spark's parser cannot read the text",
    UnknownFact -> "a name is not among the facts of this decision point",
    UnknownField -> "a named_struct names a field that decisions at this point do not have",
    UnknownFunction -> "a function is not built into this Spark",
    FunctionNotAllowed -> "a built-in function that could exhaust memory or has no use here",
    NotScalar -> "a subquery, aggregate, window or generator",
    NotPure -> "a function of more than the facts: clock, dates, user, session, chance",
    WrongAnswerType -> "the answer's type is not the one of this decision point",
    InvalidExpression -> "Spark's analyser refuses the expression, mostly for its types",
    ConstantFails -> "a constant part of the expression fails whenever it is evaluated",
    PythonText -> "a text that begins with python: names no function",
    PythonNotAllowed -> "a Python function from a session that may not bring one",
    PythonLoadFailed -> "the Python function cannot be imported, or is no function for this point",
    InternalError -> "a fault of aqepilot or of this Spark"
  )
}

/** A policy had no answer to give (overflow, cast, a Python function that raised, ...): it counts as null. */
final case class EvaluationFailure(message: String, reason: Reason = Reason.EvaluationFailed)
