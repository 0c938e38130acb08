package org.apache.spark.sql.aqepilot.facts

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, StringWriter}
import java.lang.ref.WeakReference
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.{Deflater, DeflaterOutputStream, InflaterInputStream}

import scala.collection.mutable

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator}
import com.fasterxml.jackson.databind.node.{ArrayNode, NullNode, ObjectNode}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A facts row as it stands in the record. */
object FactsJson {

  /** Arrays of up to this many longs are plain JSON; longer ones are packed. */
  val PlainLongs = 64
  val Packed = "int64-le+zlib+base64"

  private val factory = new JsonFactory

  /** The row as a JSON object: unknown is null, so are NaN and the infinities (JSON has no word for
    * them); texts are redacted; an array of more than [[PlainLongs]] longs
    * is `{"packed": "int64-le+zlib+base64", "n": 2000, "data": "..."}`.
    */
  def write(facts: InternalRow, schema: StructType, redact: String => String): String =
    text(facts, schema, new Writer(_, redact, nulls = true))

  /** The same with `{"left_out": 2000}` for each array of longs, that many. */
  def writeSummary(facts: InternalRow, schema: StructType, redact: String => String): String =
    text(
      facts,
      schema,
      new Writer(_, redact, nulls = true) {
        override protected def longs(array: ArrayData): Unit = {
          json.writeStartObject()
          json.writeNumberField("left_out", array.numElements())
          json.writeEndObject()
        }
      }
    )

  /** The same without what is null, and not redacted: for a decision's fields. */
  def writeKnown(row: InternalRow, schema: StructType): String =
    text(row, schema, new Writer(_, identity, nulls = false))

  private def text(
      facts: InternalRow,
      schema: StructType,
      writer: JsonGenerator => Writer
  ): String = {
    val out = new StringWriter(512)
    val json = factory.createGenerator(out)
    writer(json).row(facts, schema)
    json.close()
    out.toString
  }

  /** The row for a reader beside this process: nothing is redacted, and each array of longs is
    * `{"$longs": [start, count]}`, a place in `blob`.
    */
  def write(facts: InternalRow, schema: StructType, out: JsonGenerator, blob: Longs): Unit =
    new Writer(out, identity, nulls = true) {
      override protected def longs(array: ArrayData): Unit = {
        json.writeStartObject()
        json.writeArrayFieldStart("$longs")
        json.writeNumber(blob.size)
        json.writeNumber(array.numElements())
        json.writeEndArray()
        json.writeEndObject()
        blob.add(array.toLongArray())
      }
    }.row(facts, schema)

  /** A JSON object of facts with its arrays as they were before they were packed; those that were left out are null. */
  def unpacked(facts: String): String =
    if (facts == null || !isShortened.exists(facts.contains)) facts
    else mapper.writeValueAsString(unpacked(mapper.readTree(facts)))

  private val isShortened = Seq("\"packed\":", "\"left_out\":")

  private lazy val mapper = new ObjectMapper()

  private def unpacked(node: JsonNode): JsonNode = node match {
    case o: ObjectNode if o.has("left_out")                     => NullNode.instance
    case o: ObjectNode if o.path("packed").asText("") == Packed =>
      val array = mapper.createArrayNode()
      unpack(o.get("data").asText, o.get("n").asInt).foreach(array.add(_: Long))
      array
    case o: ObjectNode =>
      val names = mutable.ArrayBuffer.empty[String]
      o.fieldNames().forEachRemaining(n => names += n)
      names.foreach(n => o.set[JsonNode](n, unpacked(o.get(n))))
      o
    case a: ArrayNode =>
      (0 until a.size).foreach(i => a.set(i, unpacked(a.get(i))))
      a
    case other => other
  }

  private def unpack(data: String, n: Int): Array[Long] = {
    val bytes = new Array[Byte](n * 8)
    val packed = new ByteArrayInputStream(Base64.getDecoder.decode(data))
    val plain = new DataInputStream(new InflaterInputStream(packed))
    try plain.readFully(bytes)
    finally plain.close()
    val longs = new Array[Long](n)
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(longs)
    longs
  }

  /** Arrays one behind the other, in the machine's byte order. */
  final class Longs {
    private val arrays = Seq.newBuilder[Array[Long]]
    private var total = 0

    def size: Int = total

    def add(array: Array[Long]): Unit = {
      arrays += array
      total += 8 * array.length
    }

    def bytes: Array[Byte] = {
      val all = new Array[Byte](total)
      arrays.result().foldLeft(Platform.BYTE_ARRAY_OFFSET.toLong) { (place, array) =>
        val length = 8L * array.length
        Platform.copyMemory(array, Platform.LONG_ARRAY_OFFSET.toLong, all, place, length)
        place + length
      }
      all
    }
  }

  /** 16 hex digits, the same for equal rows, on any driver; cheap enough to be had at each ask. */
  def id(facts: InternalRow, schema: StructType): String =
    f"${hash(facts, schema, 42L)}%016x"

  private class Writer(
      protected val json: JsonGenerator,
      redact: String => String,
      nulls: Boolean
  ) {

    def row(facts: InternalRow, schema: StructType): Unit = {
      json.writeStartObject()
      var i = 0
      while (i < schema.length) {
        val isNull = facts.isNullAt(i)
        if (nulls || !isNull) {
          json.writeFieldName(schema(i).name)
          value(if (isNull) null else facts.get(i, schema(i).dataType), schema(i).dataType)
        }
        i += 1
      }
      json.writeEndObject()
    }

    private def value(value: Any, dataType: DataType): Unit = value match {
      case null             => json.writeNull()
      case text: UTF8String => json.writeString(redact(text.toString))
      case long: Long       => json.writeNumber(long)
      case int: Int         => json.writeNumber(int)
      case boolean: Boolean => json.writeBoolean(boolean)
      case double: Double   =>
        if (java.lang.Double.isFinite(double)) json.writeNumber(double) else json.writeNull()
      case struct: InternalRow => row(struct, dataType.asInstanceOf[StructType])
      case array: ArrayData    => values(array, dataType.asInstanceOf[ArrayType].elementType)
      case other               => json.writeString(redact(other.toString))
    }

    private def values(array: ArrayData, elementType: DataType): Unit =
      if (elementType == LongType && !hasNull(array)) longs(array)
      else plain(array, elementType)

    protected def longs(array: ArrayData): Unit =
      if (array.numElements() > PlainLongs) {
        json.writeStartObject()
        json.writeStringField("packed", Packed)
        json.writeNumberField("n", array.numElements())
        json.writeStringField("data", packed(array))
        json.writeEndObject()
      } else plain(array, LongType)

    private def plain(array: ArrayData, elementType: DataType): Unit = {
      json.writeStartArray()
      array.foreach(elementType, (_, element) => value(element, elementType))
      json.writeEndArray()
    }
  }

  private val MaxPacked = 8

  // All points that are asked about a shuffle have the same array of its sizes.
  private var packedLast = List.empty[(WeakReference[ArrayData], String)]

  private def packed(array: ArrayData): String =
    synchronized(packedLast).collectFirst {
      case (packed, text) if packed.get eq array => text
    }.getOrElse {
      val text = pack(array.toLongArray())
      synchronized {
        packedLast = ((new WeakReference(array), text) :: packedLast).take(MaxPacked)
      }
      text
    }

  private def pack(longs: Array[Long]): String = {
    val plain = ByteBuffer.allocate(longs.length * 8).order(ByteOrder.LITTLE_ENDIAN)
    plain.asLongBuffer().put(longs)
    val deflater = new Deflater(Deflater.BEST_SPEED)
    val packed = new ByteArrayOutputStream(longs.length * 2)
    val stream = new DeflaterOutputStream(packed, deflater, 8192)
    try stream.write(plain.array())
    finally {
      stream.close()
      deflater.end()
    }
    Base64.getEncoder.encodeToString(packed.toByteArray)
  }

  private def hasNull(array: ArrayData): Boolean = {
    var i = 0
    while (i < array.numElements() && !array.isNullAt(i)) i += 1
    i < array.numElements()
  }

  private def hash(facts: InternalRow, schema: StructType, seed: Long): Long = {
    var result = seed
    var i = 0
    while (i < schema.length) {
      val dataType = schema(i).dataType
      result = hash(if (facts.isNullAt(i)) null else facts.get(i, dataType), dataType, result)
      i += 1
    }
    result
  }

  private def hash(value: Any, dataType: DataType, seed: Long): Long = value match {
    case null                => XXH64.hashInt(0, seed)
    case text: UTF8String    => XXH64.hashUTF8String(text, seed)
    case struct: InternalRow => hash(struct, dataType.asInstanceOf[StructType], seed)
    case array: ArrayData    =>
      val elementType = dataType.asInstanceOf[ArrayType].elementType
      val sized = XXH64.hashInt(array.numElements(), seed)
      if (elementType == LongType && !hasNull(array)) {
        val longs = array.toLongArray()
        XXH64.hashUnsafeBytes(longs, Platform.LONG_ARRAY_OFFSET.toLong, longs.length * 8, sized)
      } else {
        var result = sized
        array.foreach(elementType, (_, element) => result = hash(element, elementType, result))
        result
      }
    case long: Long       => XXH64.hashLong(long, seed)
    case int: Int         => XXH64.hashLong(int.toLong, seed)
    case boolean: Boolean => XXH64.hashLong(if (boolean) 1L else 2L, seed)
    case double: Double   => XXH64.hashLong(java.lang.Double.doubleToLongBits(double), seed)
    case other            => XXH64.hashUTF8String(UTF8String.fromString(other.toString), seed)
  }
}
