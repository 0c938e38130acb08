package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The functions whose arguments have to be looked at before they run: what takes them long, or fills the memory, is
  * done in one go and cannot be ended.
  */
private[policy] object Looks {

  /** @return
    *   the same expression where there is nothing to look at
    */
  def at(e: Expression, meter: Meter): Expression = e match {
    case RLike(subject, regex)       => SearchedFirst(e, subject, Seq(regex), Search.First, meter)
    case Like(subject, like, escape) =>
      SearchedFirst(e, subject, Seq(like), Search.Like(escape), meter)
    case LikeAll(subject, patterns)    => searchedLike(e, subject, patterns, meter)
    case LikeAny(subject, patterns)    => searchedLike(e, subject, patterns, meter)
    case NotLikeAll(subject, patterns) => searchedLike(e, subject, patterns, meter)
    case NotLikeAny(subject, patterns) => searchedLike(e, subject, patterns, meter)
    case r: RegExpReplace              =>
      SearchedFirst(e, r.subject, Seq(r.regexp), Search.All, meter, Some(r.rep))
    case r: RegExpExtractBase      => SearchedFirst(e, r.subject, Seq(r.regexp), Search.All, meter)
    case StringSplit(s, regex, _)  => SearchedFirst(e, s, Seq(regex), Search.All, meter)
    case StringToMap(s, pair, key) => SearchedFirst(e, s, Seq(pair, key), Search.All, meter)
    case r: StringReplace          => Weighed(e, e.children, Weight.Replace, meter)
    case j: ArrayJoin              => Weighed(e, Seq(j.array, j.delimiter), Weight.Pairs, meter)
    case ConcatWs(separator +: rest) if rest.exists(_.dataType.isInstanceOf[ArrayType]) =>
      Weighed(e, separator +: rest, Weight.Pairs, meter)
    case b: BinaryExpression if isByPairs(b, b.left.dataType) =>
      Weighed(e, e.children, Weight.Pairs, meter)
    case d: ArrayDistinct if comparesEach(d.child.dataType) =>
      Weighed(e, Seq(d.child, d.child), Weight.Pairs, meter)
    case z: MapZipWith if !TypeUtils.typeWithProperEquals(keys(z.left.dataType)) =>
      Weighed(e, Seq(z.left, z.right), Weight.Pairs, meter)
    case s: SortArray => Weighed(e, Seq(s.base), Weight.Sort, meter)
    case r: RoundBase => Weighed(e, r.children.tail, Weight.Scale, meter)
    case c: Cast if isText(c.child.dataType) && c.dataType.isInstanceOf[DecimalType] =>
      Weighed(e, Seq(c.child), Weight.Exponent, meter)
    case _ if isLinear(e) => e
    case _                =>
      val texts = e.children.filter(c => isText(c.dataType))
      if (texts.size < 2) e else Weighed(e, texts, Weight.Pairs, meter)
  }

  private def searchedLike(
      e: Expression,
      subject: Expression,
      patterns: Seq[UTF8String],
      meter: Meter
  ) = {
    val searched = patterns.filter(_ != null).map(Literal(_, StringType))
    SearchedFirst(e, subject, searched, Search.Like('\\'), meter)
  }

  private def isByPairs(e: Expression, dataType: DataType) = e match {
    case _: ArrayUnion | _: ArrayIntersect | _: ArrayExcept | _: ArraysOverlap =>
      comparesEach(dataType)
    case _ => false
  }

  /** Spark hashes plain values only. */
  private def comparesEach(dataType: DataType) = dataType match {
    case ArrayType(element, _) => !TypeUtils.typeWithProperEquals(element)
    case _                     => false
  }

  private def keys(dataType: DataType) = dataType match {
    case MapType(key, _, _) => key
    case other              => other
  }

  private[policy] def holds(dataType: DataType)(is: DataType => Boolean): Boolean = dataType match {
    case array: ArrayType   => holds(array.elementType)(is)
    case map: MapType       => holds(map.keyType)(is) || holds(map.valueType)(is)
    case struct: StructType => struct.fields.exists(f => holds(f.dataType)(is))
    case other              => is(other)
  }

  private[policy] def isText(dataType: DataType) = dataType match {
    case _: StringType | BinaryType => true
    case _                          => false
  }

  /** Whether it goes once through each of its texts. All others may look for one in another. */
  private def isLinear(e: Expression): Boolean = e match {
    case _: Concat | _: ConcatWs | _: BinaryComparison | _: In | _: StartsWith | _: EndsWith => true
    case _: CreateArray | _: CreateNamedStruct | _: CreateMap | _: If | _: CaseWhen | _: Coalesce =>
      true
    case _: Greatest | _: Least | _: Elt | _: Murmur3Hash | _: XxHash64 => true
    case _                                                              => false
  }
}

/** Weighs some of a function's arguments before the function runs.
  *
  * @param arguments
  *   parts of `child`
  */
final private[policy] case class Weighed(
    child: Expression,
    arguments: Seq[Expression],
    weight: Weight,
    meter: Meter
) extends LookingFirst {

  override protected def look(input: InternalRow): Unit = {
    // What follows a null is not evaluated by the function either.
    val values = arguments.iterator.map(_.eval(input)).takeWhile(_ != null).toIndexedSeq
    if (values.size == arguments.size) weight.of(values, meter)
  }

  override protected def withNewChildInternal(newChild: Expression): Weighed =
    copy(child = newChild)
}

/** What makes some arguments dear. */
sealed private[policy] trait Weight {

  /** @throws TooCostly */
  def of(values: IndexedSeq[Any], meter: Meter): Unit
}

private[policy] object Weight {
  private val SortedParts = 20L
  private val MaxScale = 1000
  private val MaxDigits = 1000
  private val LargeExponent = """(?s).*[eE][+-]?0*[1-9]\d{3,}.*"""

  /** Each part of one with each of another. */
  case object Pairs extends Weight {
    override def of(values: IndexedSeq[Any], meter: Meter): Unit = {
      val parts = values.map(ValueSize.parts).sorted
      meter.compare(parts.last, parts(parts.size - 2))
    }
  }

  case object Sort extends Weight {
    override def of(values: IndexedSeq[Any], meter: Meter): Unit =
      meter.compare(ValueSize.parts(values.head), SortedParts)
  }

  /** Looked for, and longer where it is replaced. */
  case object Replace extends Weight {
    override def of(values: IndexedSeq[Any], meter: Meter): Unit = {
      val Seq(text, search, by) = values.take(3).map(ValueSize.parts)
      if (text.toDouble / math.max(1, search) * by > Meter.MaxValueBytes) meter.tooLarge("a value")
      meter.compare(text, search)
    }
  }

  /** 10 to the power of it is computed. */
  case object Scale extends Weight {
    override def of(values: IndexedSeq[Any], meter: Meter): Unit = values.head match {
      case scale: Int if math.abs(scale.toLong) > MaxScale =>
        meter.tooSlow(s"It rounds to $scale digits.")
      case _ =>
    }
  }

  /** The same, where a text gives it. */
  case object Exponent extends Weight {
    override def of(values: IndexedSeq[Any], meter: Meter): Unit = {
      val text = values.head.toString
      if (text.length > MaxDigits || text.matches(LargeExponent))
        meter.tooSlow(s"It reads a decimal of more than $MaxDigits digits.")
    }
  }
}
