"""Scala objects in the driver's JVM.

Ours have no static methods: SQL could call them.
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
        name: ``org.apache.spark.sql.aqepilot.policy.PolicySet``, say.
    """
    return of_jvm(spark._jvm, name)


def of_jvm(jvm: Any, name: str) -> Any:
    """Returns an object, ours or Spark's, by its full name, of the JVM that py4j tells."""
    return getattr(reduce(getattr, f"{name}$".split("."), jvm), "MODULE$")
