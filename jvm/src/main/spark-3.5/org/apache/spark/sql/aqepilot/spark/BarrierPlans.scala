package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInPandas, PythonMapInArrow}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.python.{MapInPandasExec, PythonMapInArrowExec}

/** Calls of Python that run in barrier mode; 4.0 renamed the second. */
private[aqepilot] object BarrierPlans {
  def is(plan: LogicalPlan): Boolean = plan match {
    case pandas: MapInPandas     => pandas.isBarrier
    case arrow: PythonMapInArrow => arrow.isBarrier
    case _                       => false
  }

  def is(plan: SparkPlan): Boolean = plan match {
    case pandas: MapInPandasExec     => pandas.isBarrier
    case arrow: PythonMapInArrowExec => arrow.isBarrier
    case _                           => false
  }
}
