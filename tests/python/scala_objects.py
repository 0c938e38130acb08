"""The objects of our Scala code, in the driver's JVM.

Their static methods are not there: SQL could call them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get(spark: SparkSession, name: str) -> Any:
    """Returns an object by its full name.

    Args:
        spark: A classic session.
        name: ``org.apache.spark.sql.aqepilot.decision.PolicySet``, say.
    """
    jvm: Any = spark._jvm
    return getattr(reduce(getattr, f"{name}$".split("."), jvm), "MODULE$")
