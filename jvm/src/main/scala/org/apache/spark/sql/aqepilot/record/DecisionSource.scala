package org.apache.spark.sql.aqepilot.record

import com.codahale.metrics.{Counter, Gauge, Histogram, MetricRegistry}
import org.apache.spark.metrics.source.Source

/** The metrics source `aqepilot`: the counters of a driver, for every sink of Spark's
  * `metrics.properties` and for `aqepilot_status()`.
  *
  *   - `decisions.<point>.<reason>`: decisions recorded
  *   - `asked_us`: histogram of the microseconds that facts and answer took
  *   - `errors`, `errors.<where>`: faults of ours that were swallowed
  *   - `dropped.<what>`: what the record lacks (see [[DecisionLog]])
  */
final private[record] class DecisionSource extends Source {
  override val sourceName: String = "aqepilot"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val askedMicros: Histogram = metricRegistry.histogram("asked_us")

  def count(name: String): Counter = metricRegistry.counter(name)

  def decided(point: String, reason: String, micros: Double): Unit = {
    count(s"decisions.$point.$reason").inc()
    askedMicros.update(math.round(micros))
  }

  def failed(where: String): Unit = {
    count("errors").inc()
    count(s"errors.$where").inc()
  }

  def observe(name: String)(read: => Long): Unit =
    metricRegistry.register(name, new Gauge[Long] { override def getValue: Long = read })

  /** Counters and gauges by name, sorted. */
  def values: Seq[(String, Long)] = {
    val all = Vector.newBuilder[(String, Long)]
    metricRegistry.getMetrics.forEach { (name, metric) =>
      metric match {
        case counter: Counter => all += name -> counter.getCount
        case gauge: Gauge[_]  => gauge.getValue match {
            case value: Long => all += name -> value
            case _           =>
          }
        case _ =>
      }
    }
    all.result().sortBy(_._1)
  }
}
