"""Fills a pack of history with more signatures.

spark-submit pack.py <pack> <signatures> <the new pack>
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

source, count, target = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
spark = SparkSession.builder.appName("bench-pack").getOrCreate()
known = spark.read.parquet(str(source))
run = known.where("kind = 'PLAN' AND form = 'SAME'").limit(1)
more = (
    run.drop("signature")
    .crossJoin(spark.range(count))
    .selectExpr(
        *(f"xxhash64(id) AS {name}" if name == "signature" else name for name in known.columns)
    )
)
rows = known.unionByName(more).coalesce(1)
folder = target.with_suffix(".written")
order = ["signature", "form", "kind", "run_ms"]
rows.sortWithinPartitions(*order, ascending=[True, True, True, False]).write.parquet(str(folder))
(part,) = folder.glob("part-*.parquet")
part.replace(target)
print(f"{target.name}: {rows.select('signature').distinct().count()} signatures")
spark.stop()
