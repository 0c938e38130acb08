package org.apache.spark.sql.aqepilot

import java.io.File
import java.lang.reflect.{Method, Modifier}
import java.nio.file.Files

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  CallMethodViaReflection,
  GenericInternalRow,
  Literal
}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** What SQL's `java_method` reaches of our classes as they are compiled, and calls of all of it.
  *
  * @param texts
  *   what to give where a parameter takes a text; one that takes a number or a boolean gets some
  */
final class StaticMethods(texts: Seq[String]) {
  import StaticMethods._

  private val values: Map[DataType, Seq[Any]] = {
    val strings = texts.map(UTF8String.fromString)
    Map(
      BooleanType -> Seq(true, false),
      ByteType -> Seq(1.toByte),
      ShortType -> Seq(1.toShort),
      IntegerType -> Seq(0, 7),
      LongType -> Seq(1L, 1L << 30),
      FloatType -> Seq(1.5f),
      DoubleType -> Seq(0.5),
      StringType -> strings
    )
  }

  /** Calls a method in all ways that SQL can; what it throws is SQL's error. */
  def call(method: Method): Int = {
    val ways = product(method.getParameterTypes.toSeq.map(typesFor), MostTypes)
    ways.map { types =>
      val arguments = types.zipWithIndex.map { case (t, i) =>
        BoundReference(i, t, nullable = true)
      }
      val called = new CallMethodViaReflection(
        Seq(Literal(method.getDeclaringClass.getName), Literal(method.getName)) ++ arguments
      )
      if (called.checkInputDataTypes().isFailure) 0
      else {
        called.initialize(0)
        val rows = product(types.map(t => values(t) :+ null), MostCalls)
        rows.foreach(row => attempt(called.eval(new GenericInternalRow(row.toArray))))
        rows.size
      }
    }.sum
  }

  private def attempt(body: => Any): Unit =
    try body
    catch { case _: Exception | _: LinkageError | _: StackOverflowError => }
}

object StaticMethods {

  private val MostTypes = 100
  private val MostCalls = 10000

  /** Those that Spark finds by the types of some arguments, of a class and of those of ours that it extends. */
  def callable: Seq[Method] = classes.flatMap { name =>
    Try(Class.forName(name, true, getClass.getClassLoader).getMethods.toSeq).getOrElse(Nil)
  }.filter { m =>
    Modifier.isStatic(m.getModifiers) && isOurs(m.getDeclaringClass.getName) &&
    m.getParameterTypes.forall(typesFor(_).nonEmpty)
  }.distinct

  def classes: Seq[String] = {
    val root =
      new File(
        classOf[io.aqepilot.AqePilotExtension].getProtectionDomain.getCodeSource.getLocation.toURI
      )
    val files = Files.walk(root.toPath)
    try files.iterator.asScala.map(root.toPath.relativize(_).toString).filter(_.endsWith(".class"))
        .map(_.stripSuffix(".class").replace('/', '.')).toSeq.sorted
    finally files.close()
  }

  private lazy val ours = classes.toSet
  private def isOurs(name: String) = ours(name)

  private def typesFor(parameter: Class[_]): Seq[DataType] =
    CallMethodViaReflection.typeMapping.toSeq.collect {
      case (t, classes) if classes.exists(c => parameter.isAssignableFrom(c)) => t
    }.sortBy(_.simpleString)

  /** All rows that take one of each, or the first `most` and as many at even distances. */
  private def product[T](choices: Seq[Seq[T]], most: Int): Seq[Seq[T]] = {
    val all = choices.map(c => BigInt(c.size)).product
    val taken =
      if (all <= most) (BigInt(0) until all) else (BigInt(0) until most).map(_ * all / most)
    taken.map { number =>
      choices.foldLeft((number, Vector.empty[T])) { case ((rest, row), c) =>
        (rest / c.size, row :+ c((rest % c.size).toInt))
      }._2
    }
  }
}
