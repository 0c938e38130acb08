package org.apache.spark.sql.aqepilot.policy.sql

import java.io.File
import java.net.URLClassLoader
import java.util.jar.JarFile

import scala.util.{Success, Try}

import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.types.{LongType, StringType}
import org.scalatest.funsuite.AnyFunSuite

/** What Catalyst makes once for a driver, and every query then uses, does not point into a policy's text. */
class SharedExpressionsSuite extends AnyFunSuite {

  test(
    "policies that are compiled first leave no place of their texts in Spark's own expressions"
  ) {
    val classpath = System.getProperty("java.class.path").split(File.pathSeparator)
    val fresh = new URLClassLoader(
      classpath.map(new File(_).toURI.toURL),
      ClassLoader.getSystemClassLoader.getParent
    )
    val lines =
      try
        fresh
          .loadClass(classOf[SharedExpressionsProbe].getName)
          .getDeclaredConstructor()
          .newInstance()
          .asInstanceOf[java.util.function.Supplier[Array[String]]]
          .get()
      finally fresh.close()
    val (places, checked) = lines.partition(_.contains(" at "))
    assert(places.isEmpty)
    assert(checked.exists(_.endsWith("Literal$.TrueLiteral")) && checked.length > 10)
  }
}

/** Runs where no class of Spark is initialised yet. */
class SharedExpressionsProbe extends java.util.function.Supplier[Array[String]] with SampleFacts {

  /** The shared expressions, those that have a place of a text with it (`... at ...`). */
  override def get(): Array[String] = {
    val texts = Seq(
      "string(97)",
      "string(array_sort(side.bytes_by_partition_id)[0])",
      "string(transform(side.bytes_by_partition_id, b -> b + 97)[0])",
      "CASE WHEN NOT side.is_left OR side.max_bytes IN (1, 97) THEN 'a' END",
      "string(sum(97) OVER ())",
      "string(listagg('a') WITHIN GROUP (ORDER BY 97))",
      "string(rand())",
      "string(sum(97) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))",
      "string(sum(97) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))"
    )
    texts.foreach { text =>
      PolicyCompiler.compile(text, facts, StringType).foreach(_.eval(row(1, 2, 3, 60)))
    }
    FixedSemantics.functionNames.foreach { name =>
      PolicyCompiler.compile(s"$name(array(97), x -> x)", facts, LongType)
    }
    shared.flatMap { case (name, tree) =>
      name +: tree.collect {
        case part: TreeNode[_] if part.origin.sqlText.isDefined =>
          s"$name: $part at ${part.origin.sqlText.get}"
      }
    }.toArray
  }

  private def shared: Seq[(String, TreeNode[_])] = for {
    holder <- objects
    field <- holder.getDeclaredFields.toSeq
    if classOf[TreeNode[_]].isAssignableFrom(field.getType)
  } yield {
    val companion = holder.getField("MODULE$").get(null)
    field.setAccessible(true)
    val name = s"${holder.getName}.${field.getName}"
    name.replace(".MODULE$", "") -> field.get(companion).asInstanceOf[TreeNode[_]]
  }

  /** Scala's objects in Spark's jar of Catalyst. */
  private def objects: Seq[Class[_]] = {
    val jar = new JarFile(
      new File(classOf[TreeNode[_]].getProtectionDomain.getCodeSource.getLocation.toURI)
    )
    try {
      val entries = jar.entries()
      Iterator
        .continually(entries)
        .takeWhile(_.hasMoreElements)
        .map(_.nextElement().getName)
        .filter(_.endsWith("$.class"))
        .map(_.stripSuffix(".class").replace('/', '.'))
        .map(name => Try[Class[_]](Class.forName(name, false, getClass.getClassLoader)))
        .collect { case Success(holder) if Try(holder.getField("MODULE$")).isSuccess => holder }
        .toList
    } finally jar.close()
  }
}
