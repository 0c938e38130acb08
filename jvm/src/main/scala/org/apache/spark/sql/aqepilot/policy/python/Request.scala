package org.apache.spark.sql.aqepilot.policy.python

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.spark.sql.aqepilot.facts.FactsJson
import org.apache.spark.sql.catalyst.InternalRow

/** A frame to a worker: its length, the length of a JSON object, the object, and what the object refers to.
  *
  * @param id
  *   comes back with the answer
  */
final class Request private (val id: Int, val bytes: Array[Byte])

object Request {
  private val ids = new AtomicInteger

  /** Has the worker make ready for the next frame. */
  val Wake: Request = new Request(0, new Array[Byte](4))

  /** A function's decision.
    *
    * @param facts
    *   a row as the function's point has it
    * @param most
    *   nanoseconds that the worker has
    */
  def ask(function: PythonFunction, facts: InternalRow, most: Long): Request =
    made(function, most) { json =>
      val longs = new FactsJson.Longs
      json.writeFieldName("facts")
      FactsJson.write(facts, function.point.facts, json, longs)
      longs.bytes
    }

  /** That the worker load a function.
    *
    * @param brought
    *   what a session brought for it
    * @param path
    *   for `sys.path`
    * @param forgotten
    *   functions that nobody will ask again, by their ids
    * @param most
    *   nanoseconds that the worker has
    */
  def load(
      function: PythonFunction,
      brought: Option[SessionFunction],
      path: Seq[String],
      forgotten: Seq[Int],
      most: Long
  ): Request =
    made(function, most) { json =>
      json.writeStringField("load", function.text.text)
      json.writeStringField("point", function.point.name)
      json.writeArrayFieldStart("path")
      path.foreach(json.writeString)
      json.writeEndArray()
      json.writeArrayFieldStart("forget")
      forgotten.foreach(json.writeNumber(_))
      json.writeEndArray()
      function.text match {
        case ImportedFunction(_, module, name) =>
          json.writeStringField("module", module)
          json.writeStringField("function", name)
        case _ =>
      }
      brought.fold(Array.emptyByteArray)(_.pickled)
    }

  /** @param fields
    *   writes the object's own fields, and returns what they refer to
    */
  private def made(function: PythonFunction, most: Long)(
      fields: JsonGenerator => Array[Byte]
  ): Request = {
    val id = ids.incrementAndGet()
    val out = new ByteArrayOutputStream(4096)
    val json = WorkerProcess.mapper.createGenerator(out)
    json.writeStartObject()
    json.writeNumberField("id", id)
    json.writeNumberField("function_id", function.id)
    json.writeNumberField("seconds", leftAlone(most))
    val referred = fields(json)
    json.writeEndObject()
    json.close()
    val length = 4 + out.size + referred.length
    val frame = ByteBuffer.allocate(4 + length)
    frame.putInt(length).putInt(out.size).put(out.toByteArray).put(referred)
    new Request(id, frame.array)
  }

  /** Seconds after which the kernel ends a worker that nobody else has. */
  private def leftAlone(most: Long): Long = 2 * TimeUnit.NANOSECONDS.toSeconds(most) + 5
}
