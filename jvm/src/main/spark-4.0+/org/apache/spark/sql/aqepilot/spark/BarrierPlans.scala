package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInArrow, MapInPandas}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.{MapInArrowExec, MapInPandasExec}

/** Calls of Python that run in barrier mode; 3.5 has another name for the second. */
private[aqepilot] object BarrierPlans {
  def is(plan: LogicalPlan): Boolean = plan match {
    case pandas: MapInPandas => pandas.isBarrier
    case arrow: MapInArrow   => arrow.isBarrier
    case _                   => false
  }

  def is(plan: SparkPlan): Boolean = plan match {
    case pandas: MapInPandasExec => pandas.isBarrier
    case arrow: MapInArrowExec   => arrow.isBarrier
    case _                       => false
  }
}
