package org.apache.spark.sql.aqepilot.policy.python

import org.scalatest.funsuite.AnyFunSuite

class PythonTextSuite extends AnyFunSuite {

  private val hash = "0123456789abcdef" * 4

  test("a text names a module and a function, or a pickled function") {
    assert(
      PythonText.of(" python:sales.policies:Choice.of ") ===
        Right(ImportedFunction("python:sales.policies:Choice.of", "sales.policies", "Choice.of"))
    )
    val text = PythonText.pickled("<lambda>", hash)
    assert(PythonText.of(text) === Right(PickledFunction(text, hash)))
    assert(PythonText.of(PythonText.pickled("a:b c", hash)).exists(_.isInstanceOf[PickledFunction]))
  }

  test("whatever else begins with python: is refused, with what is allowed") {
    Seq("python:", "python:a", "python:a:", "python:a-b:c", "python:os:system('x')", "python::f")
      .foreach { text =>
        assert(PythonText.is(text))
        val error = PythonText.of(text).left.toOption.get
        assert(error.code === "PYTHON_TEXT" && error.message.contains("python:<module>:<function>"))
      }
    assert(!PythonText.is("'python:a:b'") && !PythonText.is(null))
  }
}
