package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Fact,
  Facts,
  HistoryFacts,
  PointFacts,
  SignatureFacts
}

/** The facts of `shuffle_partitions`. */
private object ShuffleGroupFacts {

  private val fact = Fact.of[ShufflesToNumber]

  private val shuffles = new Facts[ShufflesToNumber](
    fact.fixed("num_shuffles", "shuffles in the group")(_.numShuffles),
    fact.fixed("num_partitions", "Spark's number of partitions")(_.numPartitions),
    fact.fixed("partitioning", "HASH, or RANGE for a global sort")(s =>
      if (s.isRange) "RANGE" else "HASH"
    ),
    fact.fixed("keys", "what the first shuffle partitions by, as SQL")(_.keys),
    fact.fixed("key_count", "number of keys")(_.keys.size),
    fact.fixed(
      "distinct_count",
      "distinct values of the key, the largest of all shuffles (column statistics); null when not " +
        "known and for several keys"
    )(_.distinctCount),
    fact.fixed(
      "size_in_bytes",
      "Spark's estimate of what all of them carry, uncompressed bytes; above a join without " +
        "statistics the product of its sides; null when Spark has none"
    )(_.sizes.map(_.sum)),
    fact.fixed("max_size_in_bytes", "the same of the largest of them")(_.sizes.map(_.max)),
    fact.fixed("row_count", "Spark's estimate of the rows in all of them; null when it has none")(
      _.rowCount
    ),
    fact.fixed(
      "input_bytes",
      "the sum of the estimates of tables and of the measured finished stages beneath, columns that " +
        "are not read left out, bytes; tables count as they are stored, often compressed"
    )(_.inputBytes),
    fact.fixed(
      "known_bytes",
      "uncompressed bytes of the finished stages beneath; null when there are none"
    )(_.knownBytes),
    CommonFacts.tables(fact)(_.tables),
    fact.fixed(
      "feeds",
      "what the stage that reads them does, sorted: AGGREGATE, EXPAND, GENERATE, " +
        "GROUPED_UDF (a function for each group, as in applyInPandas), JOIN, LIMIT, PYTHON, SORT (global), UNION, " +
        "WINDOW, WRITE"
    )(_.feeds),
    CommonFacts.sparkFaults(
      fact,
      "a join that Spark may make a shuffled hash join by the size of partitions"
    )(_.sparkFaults),
    SignatureFacts.shuffles(fact)(_.shuffles),
    HistoryFacts.shuffles(fact, HistoryFacts.OfLargest)(_.shuffles)
  )

  val all: PointFacts[ShufflesToNumber] = new PointFacts(
    fact.group("shuffles", "the group of shuffles", shuffles)(s => s)
  )
}
