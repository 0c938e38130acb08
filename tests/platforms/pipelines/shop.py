"""A pipeline of two datasets; a flow's own settings name its job."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.active()


@dp.materialized_view(format="json", spark_conf={"spark.aqepilot.job": "sales"})
def sales() -> DataFrame:
    events, paid = (spark.range(0, n, 1, 4) for n in (3000, 1000))
    return events.join(paid, "id").withColumn("customer", sf.col("id") % 100)


@dp.materialized_view(format="json", spark_conf={"spark.aqepilot.job": "customers"})
def customers() -> DataFrame:
    names = spark.range(100).select(sf.col("id").alias("customer"), sf.md5(sf.hex("id")))
    return spark.read.table("sales").join(names, "customer")
