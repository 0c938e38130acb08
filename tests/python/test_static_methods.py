"""SQL can call nothing of our jars.

Spark's `java_method`, `reflect` and `try_reflect` call any public static method of any class in the
driver whose parameters take texts, numbers, booleans and nulls, whoever sent the SQL. The build
makes such methods private. That none grants, loads or changes anything, hidden or not, is tried by
`StaticMethodsSuite.scala`, which calls all of them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aqepilot import jars
from aqepilot.submit import class_files

# Spark's CallMethodViaReflection takes any type that a text, a number or a boolean has.
BOXED = "Boolean|Byte|Short|Integer|Long|Float|Double|String"
ABOVE = "Number|Object|CharSequence|Comparable|constant/Constable|constant/ConstantDesc"
FROM_SQL = re.compile(rf"\(([ZBSIJFD]|Ljava/lang/({BOXED}|{ABOVE});|Ljava/io/Serializable;)*\).*")
# Those that another class of ours needs to be public; each only puts a text together.
_LEGALITY = "org.apache.spark.sql.aqepilot.points.skew_join.SkewLegality$"
HARMLESS = {f"{_LEGALITY}.{_LEGALITY.replace('.', '$')}$cannot$1"}
FOLDER = Path(jars.__file__).parent / "jars"


def callable_from_sql(jar: Path) -> set[str]:
    """Returns the methods that SQL could call, as ``class.method``."""
    return {
        f"{m.owner}.{m.name}"
        for m in class_files.methods(jar)
        if m.is_public_static and FROM_SQL.fullmatch(m.descriptor)
    }


@pytest.mark.parametrize("jar", sorted(FOLDER.glob("*.jar")), ids=lambda jar: jar.name)
def test_no_method_of_a_jar(jar: Path) -> None:
    """Scala makes such methods of objects and function literals; the build makes them private."""
    methods = list(class_files.methods(jar))
    assert len({m.owner for m in methods}) > 200
    named = {f"{m.owner}.{m.name}" for m in methods}
    assert "org.apache.spark.sql.aqepilot.policy.python.SessionFunctions.allow" in named
    assert "org.apache.spark.sql.aqepilot.policy.python.WorkerProcess.start" in named
    assert callable_from_sql(jar) == HARMLESS
