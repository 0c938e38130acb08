"""Prints, as JSON, what event logs suggest and which queries they have, each log by itself.

spark-submit suggested.py <event log> ...
"""

import json
import sys

from pyspark.sql import SparkSession

from aqepilot import read_log

ALL = 1000
spark = SparkSession.builder.appName("bench-suggested").getOrCreate()
listed = []
for path in sys.argv[1:]:
    log = read_log(spark, path)
    named = log.queries.where("description IS NOT NULL").select("fingerprint", "description")
    listed.append(
        {
            "suggestions": [one._asdict() for one in log.suggest(top=ALL)],
            "named": [list(row) for row in named.distinct().collect()],
        }
    )
print(json.dumps(listed))
spark.stop()
