"""History that is wrong by any factor, and policies that decide by it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from hypothesis import strategies as st

import plans
import scala_objects
from aqepilot import catalog, recipes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).with_name("WrongHistory.java")
SUBMITTED = {"spark.aqepilot.history.own": "true"}
RECIPES = ("learned", "learned_joins", "learned_order", "learned_partitions", "learned_skew")
LISTED = "spark.aqepilot.policies"


class WrongHistory:
    """Fills a driver's own history with random figures of what ran (`WrongHistory.java`)."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        with plans.COMPILING:
            compiler.cook(SOURCE.read_text("utf-8"))
        history = scala_objects.get(spark, "org.apache.spark.sql.aqepilot.history.History").active()
        (constructor,) = compiler.getClassLoader().loadClass(SOURCE.stem).getConstructors()
        arguments = spark.sparkContext._gateway.new_array(jvm.Object, 1)
        arguments[0] = history.get()
        self._listener = constructor.newInstance(arguments)
        self._bus: Any = spark.sparkContext._jsc.sc().listenerBus()
        spark.sparkContext._jsc.sc().addSparkListener(self._listener)

    @property
    def parts(self) -> int:
        """How many parts of queries have a wrong history so far."""
        return int(self._listener.getParts())

    def begin(self, salt: int) -> None:
        """Draws other factors for the queries from here on."""
        self._listener.setSalt(salt)

    def settle(self) -> None:
        """Waits until the queries that have ended are learnt from, but not for long."""
        before = self.parts
        end = time.monotonic() + 0.5
        while self.parts == before and time.monotonic() < end:
            self._bus.waitUntilEmpty()


def texts(point: str) -> list[str]:
    """Returns SQL texts of what the history knows at a point, for answers to depend on.

    >>> texts("skew_join")[:2]
    ['left.history.runs', 'left.history.match']
    """
    structs = [fact.path for fact in catalog.point(point).facts if fact.path.endswith("history")]
    names = [fact.path for fact in catalog.history() if fact.path not in ("signature", "age_days")]
    return [f"{one}.{name}" for one in structs if one != "query.history" for name in names]


@st.composite
def policies(draw: st.DrawFn, drawn: dict[str, str]) -> dict[str, str]:
    """Puts a recipe that decides by history before or behind drawn policies, in three of four."""
    if not draw(st.integers(0, 3)):
        return drawn
    name = draw(st.sampled_from(RECIPES))
    recipe = recipes.get(name, pyspark.__version__).to_conf()
    others = drawn[LISTED]
    order = draw(st.sampled_from([[name], [name, others], [name, others], [others, name]]))
    return drawn | recipe | {LISTED: ",".join(part for part in order if part)}
