package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.decision.{
  AnswerField,
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow, OldFacts}
import org.apache.spark.sql.types._

/** Whether the rows of a write are shuffled once more before they are written, and by what.
  *
  * Spark has no rule of its own here: each task of the query's last stage writes what it has.
  */
object WriteDistributionPoint extends DecisionPoint[Any] {

  override val name: String = "write_distribution"

  override val builtIn: String = "none: each task of the query's last stage writes the rows it has"

  override val summary: String = "how rows are distributed before they are written to files"

  override val asked: String =
    "when a query is optimised, once for each command that writes files: INSERT, CREATE TABLE AS SELECT, " +
      "INSERT OVERWRITE DIRECTORY, and DataFrame.write; when it is planned, for each write to a table of the " +
      "DataSource V2 interface that says what it requires of the rows"

  val Rebalance = "rebalance"
  val Columns = "columns"
  val TargetBytes = "target_bytes"

  override val answer: StructType = StructType(
    Seq(
      AnswerField.bare(
        fact(
          Rebalance,
          BooleanType,
          "true = the rows are shuffled before they are written, as by the hint REBALANCE: AQE merges small " +
            "partitions and splits large ones; false = they are written as they are"
        )
      ),
      fact(
        Columns,
        ArrayType(StringType),
        "written columns to shuffle by, so that equal values come to few tasks; an empty array spreads the rows " +
          "evenly; null = the dynamic partition columns"
      ),
      fact(
        TargetBytes,
        LongType,
        "size that a task should write, shuffle bytes; null = spark.sql.adaptive.advisoryPartitionSizeInBytes"
      )
    )
  )

  override val answerMeaning: String =
    "how to distribute the rows; rebalance may stand alone, as true or false"

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group(
        "write",
        "what is written, and how",
        fact("command", StringType, "Spark's command, e.g. InsertIntoHadoopFsRelationCommand"),
        fact("format", StringType, "format of the files, e.g. parquet; null when it has no name"),
        fact("table", StringType, "the table that is written to; null for files of no table"),
        fact(
          "mode",
          StringType,
          "APPEND, OVERWRITE, ERROR_IF_EXISTS or IGNORE; null when not known"
        ),
        fact("columns", ArrayType(StringType), "columns of the rows, in the order of the write"),
        fact("partition_columns", ArrayType(StringType), "partition columns"),
        fact(
          "dynamic_columns",
          ArrayType(StringType),
          "those of the partition columns whose values come from the rows"
        ),
        fact(
          "constant_columns",
          ArrayType(StringType),
          "those of the dynamic columns that have the same value in all rows: nothing is distributed by them"
        ),
        fact(
          "ambiguous_columns",
          ArrayType(StringType),
          "those of the dynamic columns that are floating-point numbers, timestamps, bytes or text with a collation: " +
            "values may be equal and yet have two directories (0.0 and -0.0), or differ and share one"
        ),
        fact(
          "transforms",
          ArrayType(StringType),
          "functions of columns that a table of the DataSource V2 interface is partitioned by, e.g. days(ts)"
        ),
        fact(
          "static_partitions",
          ArrayType(StringType),
          "partition columns whose value the command gives, as name=value, sorted; null for a table of the " +
            "DataSource V2 interface: there they are constant_columns"
        ),
        fact(
          "overwrites_dynamically",
          BooleanType,
          "whether an overwrite leaves partitions that get no rows (spark.sql.sources.partitionOverwriteMode)"
        ),
        fact("bucket_columns", ArrayType(StringType), "columns of the table's buckets"),
        fact("num_buckets", IntegerType, "buckets of the table; null when it has none"),
        fact(
          "required_distribution",
          StringType,
          "what is said of the distribution already: CLUSTERED or ORDERED = Spark shuffles the rows, as the table " +
            "requires; AS_IS = the write has the option use-table-distribution-and-ordering = false; null = nothing"
        ),
        fact(
          "required_ordering",
          ArrayType(StringType),
          "what the rows of a task have to be sorted by beside the partition columns, as SQL"
        ),
        fact(
          "max_concurrent_writers",
          IntegerType,
          "spark.sql.maxConcurrentOutputFileWriters: files that a task has open at once; 0 = one, and the " +
            "rows are sorted by the dynamic columns first; null for a table of the DataSource V2 interface"
        ),
        fact(
          "fans_out",
          BooleanType,
          "whether a task may have a file open in each partition at once: a partitioned table of the DataSource V2 " +
            "interface that requires no order of the rows"
        ),
        fact(
          "is_adaptive",
          BooleanType,
          "whether AQE is on (spark.sql.adaptive.enabled), without which no partitions are merged or split"
        ),
        fact("is_streaming", BooleanType, "whether a streaming query writes")
      ),
      group(
        "input",
        "the query whose rows are written",
        OldFacts.tables,
        fact(
          "size_in_bytes",
          LongType,
          "Spark's estimate of its size, bytes, before partitions of tables are pruned: see estimate_from"
        ),
        fact("row_count", LongType, "Spark's estimate of its rows; null when it has none"),
        OldFacts.rowBytes,
        fact(
          "estimate_from",
          StringType,
          "where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"
        ),
        fact(
          "distinct_count",
          LongType,
          "distinct values of the dynamic column (column statistics); null when not known and for several columns"
        ),
        fact(
          "num_tasks",
          IntegerType,
          "tasks that will read the query's sources, about; null above a shuffle, where AQE decides that, and when " +
            "not known"
        ),
        fact(
          "last_shuffle",
          StringType,
          "what shuffles last, as far as the logical plan tells: AGGREGATE, JOIN (which may turn out to be a " +
            "broadcast), WINDOW, SORT, REPARTITION, LIMIT; null for nothing"
        ),
        fact(
          "shuffled_by",
          ArrayType(StringType),
          "written columns that the last shuffle distributes by: rows with the same values are in one task"
        ),
        fact(
          "user_distribution",
          StringType,
          "what the query's author said that the write keeps: REPARTITION, COALESCE, REBALANCE, SORT, " +
            "SORT_WITHIN_PARTITIONS; RDD where the rows are an RDD's or a checkpoint's, as that has them; null for nothing"
        ),
        fact(
          "is_limited",
          BooleanType,
          "whether there is a LIMIT, OFFSET or TABLESAMPLE in the query"
        ),
        fact(
          "is_deterministic",
          BooleanType,
          "whether a task that runs again gives the same rows, as far as the expressions tell"
        ),
        fact(
          "distributing_columns",
          ArrayType(StringType),
          "written columns that rows can be distributed by: not maps and the like, nor what may differ when a task " +
            "runs again, as sums of floating-point numbers do"
        ),
        fact(
          "spreads_evenly",
          BooleanType,
          "whether rows can be distributed without columns: Spark sorts each task's rows for it " +
            "(spark.sql.execution.sortBeforeRepartition), which takes rows that do not differ when a task runs again"
        )
      )
    )
  )

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] =
    WriteLegality.verdict(WriteAnswer.of(answer), facts, guards)

  override def fates: FateReader = WriteFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.SparkSessionExtensions", Some("injectPreCBORule")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("partitionColumns")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("staticPartitions")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("bucketSpec")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("requiredOrdering")),
    Need(
      "org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions",
      Some("optAdvisoryPartitionSize")
    )
  )
}
