"""Runs queries, each under its pin if there is one; prints what they returned as JSON.

spark-submit pinned.py <tables' folder> <JSON file: query texts by number> <folder of pins, or ->
    <rounds, or nothing for one>

Of each query: the number of rows, and a digest of them in any order, or its error.
"""

import hashlib
import json
import sys
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

folder, texts, pins, *rounds = sys.argv[1:]
spark = SparkSession.builder.appName("bench-pinned").getOrCreate()
for path in Path(folder).glob("*.parquet"):
    spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)


def cell(value: object) -> str:
    """Sums of numbers depend on the order of rows in their last digits."""
    if isinstance(value, Decimal):
        value = value.normalize()
    return f"{value:.6g}" if isinstance(value, (float, Decimal)) else str(value)


def digest(rows: list) -> str:
    lines = sorted("|".join(map(cell, row)) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def returned(number: str, text: str) -> dict[str, object]:
    pin = Path(pins, f"{number}.toml")
    if pins != "-":
        import aqepilot

        # The texts are checked by queries, too.
        spark.sparkContext.setJobDescription("policies")
        aqepilot.use(spark, *([str(pin)] if pin.is_file() else []))
    spark.sparkContext.setJobDescription(number)
    try:
        rows = spark.sql(text).collect()
    except Exception as error:
        return {"error": str(error)[:500]}
    return {"rows": len(rows), "digest": digest(rows)}


queries = json.loads(Path(texts).read_text())
for _ in range(int(rounds[0]) - 1 if rounds else 0):
    for number, text in queries.items():
        returned(number, text)
print(json.dumps({number: returned(number, text) for number, text in queries.items()}))
spark.stop()
