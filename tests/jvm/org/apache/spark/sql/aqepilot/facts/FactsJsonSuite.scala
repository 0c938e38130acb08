package org.apache.spark.sql.aqepilot.facts

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.Inflater

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class FactsJsonSuite extends AnyFunSuite {

  private val side = new StructType()
    .add("tables", ArrayType(StringType)).add("size_in_bytes", LongType)
    .add("bytes_by_partition_id", ArrayType(LongType)).add("non_empty_ratio", DoubleType)
    .add("num_partitions", IntegerType).add("is_left", BooleanType)
  private val schema =
    new StructType().add("query", new StructType().add("description", StringType))
      .add("side", side)

  private def text(s: String) = UTF8String.fromString(s)

  private def row(bytes: ArrayData, ratio: Any = 0.5, description: String = "d") = InternalRow(
    InternalRow(text(description)),
    InternalRow(new GenericArrayData(Array[Any](text("a"), null)), 1L << 40, bytes, ratio, 7, true)
  )

  private def longs(n: Int, seed: Int = 1): Array[Long] = {
    val random = new scala.util.Random(seed)
    Array.fill(n)(random.nextInt(1 << 30).toLong * 5 - 7)
  }

  private def parsed(facts: InternalRow, redact: String => String = identity): JsonNode =
    new ObjectMapper().readTree(FactsJson.write(facts, schema, redact))

  private def unpacked(node: JsonNode): Seq[Long] = {
    assert(node.get("packed").asText == "int64-le+zlib+base64")
    val bytes = new Array[Byte](node.get("n").asInt * 8)
    val inflater = new Inflater
    inflater.setInput(Base64.getDecoder.decode(node.get("data").asText))
    assert(inflater.inflate(bytes) == bytes.length && inflater.finished())
    val all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer()
    Seq.fill(node.get("n").asInt)(all.get())
  }

  test("values keep their types and an unknown one is null") {
    val json = parsed(row(null))
    assert(json.toString ==
      """{"query":{"description":"d"},"side":{"tables":["a",null],"size_in_bytes":1099511627776,""" +
      """"bytes_by_partition_id":null,"non_empty_ratio":0.5,"num_partitions":7,"is_left":true}}""")
    assert(parsed(InternalRow(null, null)).toString == """{"query":null,"side":null}""")
  }

  test("a summary has the lengths of arrays of longs, and all else") {
    val facts = row(UnsafeArrayData.fromPrimitiveArray(longs(3)), description = "secret")
    val json = FactsJson.writeSummary(facts, schema, _.replace("secret", "***"))
    assert(
      json ==
        """{"query":{"description":"***"},"side":{"tables":["a",null],"size_in_bytes":1099511627776,""" +
        """"bytes_by_partition_id":{"left_out":3},"non_empty_ratio":0.5,"num_partitions":7,"is_left":true}}"""
    )
  }

  test("arrays that are written again and again stay apart") {
    val arrays = (1 to 20).map(seed => UnsafeArrayData.fromPrimitiveArray(longs(100, seed)))
    for (_ <- 1 to 2; i <- arrays.indices) {
      val json = parsed(row(arrays(i))).at("/side/bytes_by_partition_id")
      assert(unpacked(json) === longs(100, i + 1).toSeq)
      assert(parsed(row(arrays(i))).at("/side/bytes_by_partition_id") === json)
    }
  }

  test("NaN and infinity are null, text is escaped") {
    for (bad <- Seq(Double.NaN, Double.PositiveInfinity, Double.NegativeInfinity))
      assert(parsed(row(null, bad)).at("/side/non_empty_ratio").isNull)
    val odd = "a\"b\\c\nd\u0001é𝄞"
    assert(parsed(row(null, description = odd)).at("/query/description").asText == odd)
  }

  test("up to 64 longs are plain, 65, 2,000 and 20,000 are packed and come back as they were") {
    val plain =
      parsed(row(UnsafeArrayData.fromPrimitiveArray(longs(64)))).at("/side/bytes_by_partition_id")
    assert(plain.isArray && plain.size == 64)
    for {
      n <- Seq(65, 2000, 20000)
      array <- Seq[ArrayData](
        UnsafeArrayData.fromPrimitiveArray(longs(n)),
        new GenericArrayData(longs(n).map(x => x: Any))
      )
    } {
      val packed = parsed(row(array)).at("/side/bytes_by_partition_id")
      assert(packed.get("n").asInt == n && unpacked(packed) == longs(n).toSeq)
    }
  }

  test("an array with an unknown element is plain, at any length") {
    val some = new GenericArrayData(longs(100).map(x => x: Any).updated(3, null))
    val json = parsed(row(some)).at("/side/bytes_by_partition_id")
    assert(json.size == 100 && json.get(3).isNull)
  }

  test("texts are redacted without breaking the JSON") {
    val json = parsed(row(null, description = "a:\"}1234"), _.replaceAll("[\"}0-9]+", "X"))
    assert(json.at("/query/description").asText == "a:X")
    assert(json.at("/side/size_in_bytes").asLong == 1099511627776L)
  }

  test("the id is equal for equal rows and differs for any difference") {
    def id(r: InternalRow) = FactsJson.id(r, schema)
    val base = id(row(UnsafeArrayData.fromPrimitiveArray(longs(2000))))
    assert(base.matches("[0-9a-f]{16}"))
    assert(base == id(row(new GenericArrayData(longs(2000).map(x => x: Any)))))
    val others = Seq(
      row(UnsafeArrayData.fromPrimitiveArray(longs(2000).updated(1999, 0L))),
      row(null),
      row(UnsafeArrayData.fromPrimitiveArray(longs(1999))),
      row(UnsafeArrayData.fromPrimitiveArray(longs(2000)), 0.25),
      row(UnsafeArrayData.fromPrimitiveArray(longs(2000)), null),
      row(UnsafeArrayData.fromPrimitiveArray(longs(2000)), description = ""),
      row(UnsafeArrayData.fromPrimitiveArray(longs(2000)), description = "e")
    ).map(id)
    assert((base +: others).distinct.size == others.size + 1)
  }

  test("the id does not change from one release to the next") {
    val facts = row(UnsafeArrayData.fromPrimitiveArray(Array.tabulate(100)(_.toLong)))
    assert(FactsJson.id(facts, schema) == "82422eeaa95c82c4")
  }
}
