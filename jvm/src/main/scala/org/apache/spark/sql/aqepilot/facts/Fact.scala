package org.apache.spark.sql.aqepilot.facts

import java.time.Instant

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, DateTimeUtils, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A fact: its name, its type, its meaning, and its value.
  *
  * {{{
  * private val fact = Fact.of[Join]
  * fact("size_in_bytes", "Spark's estimate of its size")(Estimates.of(_).sizeInBytes)
  * fact.fixed("condition", "the join's condition, as SQL")(_.condition.map(_.sql))
  * }}}
  *
  * @param isFixed
  *   whether its value is the same at any time and on any thread
  * @tparam A
  *   what the value is read from
  */
final class Fact[-A] private (
    val field: StructField,
    private[facts] val read: A => Any,
    private[facts] val isFixed: Boolean
) {

  /** The same fact, read from a part of something. */
  def in[B](part: B => A): Fact[B] = new Fact(field, b => read(part(b)), isFixed)
}

object Fact {

  /** Declares facts that are read from one type. */
  def of[A]: Declared[A] = new Declared[A]

  final class Declared[A] private[Fact] () {

    /** A fact whose type is that of its value; None is null. */
    def apply[T: FactType](name: String, meaning: String)(value: A => T): Fact[A] =
      declared(name, meaning, value, isFixed = false)

    /** A fact that no query waits for, unless a policy reads it: the record's thread computes it.
      *
      * Its value must depend on nothing but what never changes: expressions and the nodes of plans, numbers that were
      * taken before. What Spark estimates of a plan is in a cache of the plan, which AQE empties: another thread that
      * asked for it could leave an old estimate there. Nor does that thread have the query's session, its local
      * properties, or the state of its stages.
      */
    def fixed[T: FactType](name: String, meaning: String)(value: A => T): Fact[A] =
      declared(name, meaning, value, isFixed = true)

    private def declared[T](name: String, meaning: String, value: A => T, isFixed: Boolean)(
        implicit factType: FactType[T]
    ): Fact[A] = new Fact(
      field(name, factType.dataType, meaning),
      a => {
        val known = value(a)
        if (known == null) null else factType.catalyst(known)
      },
      isFixed
    )

    /** A struct of facts about a part of it. */
    def group[B](name: String, meaning: String, facts: Facts[B])(part: A => B): Fact[A] =
      new Fact(field(name, facts.schema, meaning), a => facts.row(part(a)), isFixed = false)

    /** A struct of facts about a part of it that may be missing; None is null. */
    def optionalGroup[B](name: String, meaning: String, facts: Facts[B])(
        part: A => Option[B]
    ): Fact[A] =
      new Fact(field(name, facts.schema, meaning), part(_).map(facts.row).orNull, isFixed = false)

    /** A struct whose row is there already. */
    def struct(name: String, meaning: String, schema: StructType)(row: A => InternalRow): Fact[A] =
      new Fact(field(name, schema, meaning), row, isFixed = false)

    /** An array of structs whose rows are there already. */
    def structs(name: String, meaning: String, schema: StructType)(
        rows: A => Seq[InternalRow]
    ): Fact[A] = new Fact(
      field(name, ArrayType(schema), meaning),
      a => Option(rows(a)).map(known => new GenericArrayData(known.toArray[Any])).orNull,
      isFixed = false
    )
  }

  /** A nullable field whose comment is its meaning. */
  private[aqepilot] def field(name: String, dataType: DataType, meaning: String): StructField =
    StructField(name, dataType, nullable = true).withComment(meaning)
}

/** Facts about one thing, in their order: their schema, and their row. */
final class Facts[A](facts: Fact[A]*) {

  val schema: StructType = StructType(facts.map(_.field))

  private val reads: Array[Any => Any] = facts.map(_.read.asInstanceOf[Any => Any]).toArray
  private val settled: Array[Int] = facts.indices.filterNot(facts(_).isFixed).toArray

  /** Each value is computed when it is first read, under the settings that hold now. */
  def row(from: A): LazyRow = new LazyRow(reads, settled, from)
}

/** How a value of a Scala type stands in a row of facts. */
final class FactType[T](val dataType: DataType, val catalyst: T => Any)

object FactType {

  implicit val int: FactType[Int] = new FactType(IntegerType, n => n)
  implicit val long: FactType[Long] = new FactType(LongType, n => n)
  implicit val double: FactType[Double] = new FactType(DoubleType, n => n)
  implicit val boolean: FactType[Boolean] = new FactType(BooleanType, b => b)
  implicit val string: FactType[String] =
    new FactType(StringType, s => UTF8String.fromString(s))

  implicit val instant: FactType[Instant] =
    new FactType(TimestampType, DateTimeUtils.instantToMicros(_))

  /** Above `Long.MaxValue` it is that. */
  implicit val bigInt: FactType[BigInt] =
    new FactType(LongType, n => if (n.isValidLong) n.toLong else Long.MaxValue)

  implicit val strings: FactType[Seq[String]] = new FactType(
    ArrayType(StringType),
    s => new GenericArrayData(s.map(UTF8String.fromString).toArray[Any])
  )

  implicit val ints: FactType[Seq[Int]] = new FactType(
    ArrayType(IntegerType),
    n => new GenericArrayData(n.toArray[Any])
  )

  /** Sizes, as an array that several facts may share. */
  implicit val sizes: FactType[ArrayData] = new FactType(ArrayType(LongType), a => a)

  implicit def option[T](implicit known: FactType[T]): FactType[Option[T]] =
    new FactType(known.dataType, _.map(known.catalyst).orNull)
}
