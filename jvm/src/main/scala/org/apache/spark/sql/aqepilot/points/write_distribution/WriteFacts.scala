package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Estimates,
  Fact,
  Facts,
  HistoryFacts,
  JoinSide,
  PointFacts,
  Tables
}

/** The facts of `write_distribution`. */
private object WriteFacts {

  private val fact = Fact.of[WriteToDistribute]

  private val write = new Facts[WriteToDistribute](
    fact("command", "Spark's command, e.g. InsertIntoHadoopFsRelationCommand")(
      _.target.command.nodeName
    ),
    fact("format", "format of the files, e.g. parquet; null when it has no name")(_.target.format),
    fact("table", "the table that is written to; null for files of no table")(_.target.table),
    fact("mode", "APPEND, OVERWRITE, ERROR_IF_EXISTS or IGNORE; null when not known")(
      _.target.mode
    ),
    fact("columns", "columns of the rows, in the order of the write")(_.target.columns.map(_._1)),
    fact("partition_columns", "partition columns")(_.target.partitionColumns),
    fact(
      "dynamic_columns",
      "those of the partition columns whose values come from the rows"
    )(_.dynamicColumns),
    fact(
      "constant_columns",
      "those of the dynamic columns that have the same value in all rows: nothing is distributed by them"
    )(_.constantColumns),
    fact(
      "ambiguous_columns",
      "those of the dynamic columns that are floating-point numbers, timestamps, bytes or text with a collation: " +
        "values may be equal and yet have two directories (0.0 and -0.0), or differ and share one"
    )(_.ambiguousColumns),
    fact(
      "transforms",
      "functions of columns that a table of the DataSource V2 interface is partitioned by, e.g. days(ts)"
    )(_.target.transforms),
    fact(
      "static_partitions",
      "partition columns whose value the command gives, as name=value, sorted; null for a table of the " +
        "DataSource V2 interface: there they are constant_columns"
    )(_.target.staticPartitions),
    fact(
      "overwrites_dynamically",
      "whether an overwrite leaves partitions that get no rows (spark.sql.sources.partitionOverwriteMode)"
    )(_.target.overwritesDynamically),
    fact("bucket_columns", "columns of the table's buckets")(
      _.target.buckets.toSeq.flatMap(_.bucketColumnNames)
    ),
    fact("num_buckets", "buckets of the table; null when it has none")(
      _.target.buckets.map(_.numBuckets)
    ),
    fact(
      "required_distribution",
      "what is said of the distribution already: CLUSTERED or ORDERED = Spark shuffles the rows, as the table " +
        "requires; AS_IS = the write has the option use-table-distribution-and-ordering = false; null = nothing"
    )(_.target.distribution),
    fact(
      "required_ordering",
      "what the rows of a task have to be sorted by beside the partition columns, as SQL"
    )(_.target.requiredOrdering),
    fact(
      "max_concurrent_writers",
      "spark.sql.maxConcurrentOutputFileWriters: files that a task has open at once; 0 = one, and the " +
        "rows are sorted by the dynamic columns first; null for a table of the DataSource V2 interface"
    )(_.target.maxConcurrentWriters),
    fact(
      "fans_out",
      "whether a task may have a file open in each partition at once: a partitioned table of the DataSource V2 " +
        "interface that requires no order of the rows"
    )(_.target.fansOut),
    fact(
      "is_adaptive",
      "whether AQE is on (spark.sql.adaptive.enabled), without which no partitions are merged or split"
    )(_.conf.adaptiveExecutionEnabled),
    fact("is_streaming", "whether a streaming query writes")(_.isStreaming)
  )

  private val input = new Facts[WriteToDistribute](
    CommonFacts.tables(fact)(w => Tables.of(w.query)),
    fact(
      "size_in_bytes",
      "Spark's estimate of its size, bytes, before partitions of tables are pruned: see estimate_from"
    )(_.statistics.sizeInBytes),
    fact("row_count", "Spark's estimate of its rows; null when it has none")(
      _.statistics.rowCount
    ),
    CommonFacts.rowBytes(fact)(w => JoinSide.rowBytes(w.query)),
    fact(
      "estimate_from",
      "where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"
    )(w => Estimates.from(w.query, w.conf)),
    fact(
      "distinct_count",
      "distinct values of the dynamic column (column statistics); null when not known and for several columns"
    )(_.distinctCount),
    fact(
      "num_tasks",
      "tasks that will read the query's sources, about; null above a shuffle, where AQE decides that, and when " +
        "not known"
    )(_.written.tasks),
    fact(
      "last_shuffle",
      "what shuffles last, as far as the logical plan tells: AGGREGATE, JOIN (which may turn out to be a " +
        "broadcast), WINDOW, SORT, REPARTITION, LIMIT; null for nothing"
    )(_.written.lastShuffle.map(_.word)),
    fact(
      "shuffled_by",
      "written columns that the last shuffle distributes by: rows with the same values are in one task"
    )(w => w.columnsWhere(w.written.isShuffledBy)),
    fact(
      "user_distribution",
      "what the query's author said that the write keeps: REPARTITION, COALESCE, REBALANCE, SORT, " +
        "SORT_WITHIN_PARTITIONS; RDD where the rows are an RDD's or a checkpoint's, as that has them; null for nothing"
    )(_.written.usersDistribution),
    fact("is_limited", "whether there is a LIMIT, OFFSET or TABLESAMPLE in the query")(
      _.written.isLimited
    ),
    fact(
      "is_deterministic",
      "whether a task that runs again gives the same rows, as far as the expressions tell"
    )(_.query.deterministic),
    fact(
      "distributing_columns",
      "written columns that rows can be distributed by: not maps and the like, nor what may differ when a task " +
        "runs again, as sums of floating-point numbers do"
    )(w => w.columnsWhere(w.written.distributes)),
    fact(
      "spreads_evenly",
      "whether rows can be distributed without columns: Spark sorts each task's rows for it " +
        "(spark.sql.execution.sortBeforeRepartition), which takes rows that do not differ when a task runs again"
    )(_.written.spreadsEvenly),
    HistoryFacts.plan(fact)(w => Some(w.query))
  )

  val all: PointFacts[WriteToDistribute] = new PointFacts(
    fact.group("write", "what is written, and how", write)(w => w),
    fact.group("input", "the query whose rows are written", input)(w => w)
  )
}
