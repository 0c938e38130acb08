"""Types of the facts and decisions of each decision point, for annotations and editors.

Generated from catalog.json: `make catalog`. The facts that a function is given have these
attributes; `aqepilot.testing.facts` makes some. None means that Spark does not know. In a decision,
None leaves that field to Spark.

>>> SkewJoin(force=True, left_splits=[1, 4]).asdict()
{'force': True, 'left_splits': [1, 4]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


class _Decision:
    def asdict(self) -> dict[str, Any]:
        """Returns the fields that are decided, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


class History(Protocol):
    """What past runs measured of a sub-plan, or of a shuffle."""

    signature: str | None
    """names the sub-plan, or the shuffle, on each run: 16 hex digits"""
    runs: int | None
    """past runs that the other facts are of; null where they are not to be used: see held"""
    match: str | None
    """SAME = runs of the same sub-plan; SHAPE = of sub-plans that differ in literals"""
    age_days: float | None
    """since the newest of them ended, days"""
    rows_p50: int | None
    """rows, the median of the runs"""
    rows_max: int | None
    """rows, the most of all runs"""
    bytes_p50: int | None
    """the rows' size, uncompressed, bytes, the median; null where none was broadcast or shuffled"""
    bytes_max: int | None
    """the same, the most"""
    shuffle_bytes_p50: int | None
    """shuffle bytes (compressed), the median; null where nothing was shuffled"""
    partitions_p50: int | None
    """partitions that the shuffle had, the median"""
    max_partition_ratio: float | None
    """the largest partition's bytes to the median one's, the median of the runs"""
    input_ratio: float | None
    """bytes of the tables and files that this run reads beneath, to the median of what those runs
    read; null where Spark has not left out partitions yet
    """
    ms_per_mb: float | None
    """task milliseconds of the stage that read the shuffle, for each MB that it read"""
    us_per_row: float | None
    """task microseconds of that stage for each row that it read"""
    spilled_ratio: float | None
    """share of the runs in which that stage spilled, 0 to 1"""
    peak_memory_max: int | None
    """peak execution memory of a task of that stage, bytes, the most of all runs"""
    reduction: float | None
    """rows that a partial aggregate gave for each that it got, 0 to 1; null for others"""
    failed_runs: int | None
    """runs in which a task of that stage failed"""
    held: str | None
    """why the past runs are not to be used, as the pack says; null where they are"""


class QueryHistory(Protocol):
    """Past runs of a query."""

    runs: int | None
    """past runs of the query with this fingerprint"""
    age_days: float | None
    """since the newest of them ended, days"""
    task_ms_p50: int | None
    """task milliseconds of those in which no policy decided by history, the median"""
    failed_runs: int | None
    """those that failed"""
    decided_runs: int | None
    """those in which a policy decided by history"""
    decided_task_ms_p50: int | None
    """their task milliseconds, the median"""
    held: str | None
    """why the past runs are not to be used, as the pack says; null where they are"""


class Query(Protocol):
    """The facts `query`, at every point."""

    execution_id: int | None
    """Spark's SQL execution id; null outside an execution (df.rdd)"""
    fingerprint: str | None
    """SHA-256 of the analysed plan without literals: the same recurring query has the same
    fingerprint on any day and driver; null outside an execution
    """
    description: str | None
    """the job description (SparkContext.setJobDescription)"""
    app_name: str | None
    """spark.app.name"""
    app_id: str | None
    """the application's id"""
    user: str | None
    """the user that runs the application"""
    tags: tuple[str, ...] | None
    """job tags (SparkContext.addJobTag), sorted"""
    job: str | None
    """the job that runs, the same name on each day"""
    job_source: str | None
    """where its name is from: SETTING, DBT, OPENLINEAGE, AIRFLOW, UNKNOWN_RUN"""
    run: str | None
    """the run of the job, the same when its scheduler tries it again"""
    run_source: str | None
    """where its id is from: SETTING, OPENLINEAGE, AIRFLOW, UNKNOWN_RUN"""
    attempt: int | None
    """how many times the run has been started, this time included; null when nothing says so"""
    history: QueryHistory | None
    """past runs of the query with this fingerprint; null where none is known"""


class Conf(Protocol):
    """The facts `conf`, at every point."""

    auto_broadcast_join_threshold: int | None
    """spark.sql.autoBroadcastJoinThreshold, bytes; -1 = never"""
    adaptive_auto_broadcast_join_threshold: int | None
    """spark.sql.adaptive.autoBroadcastJoinThreshold, bytes; null when not set"""
    non_empty_partition_ratio_for_broadcast_join: float | None
    """spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin"""
    max_shuffled_hash_join_local_map_threshold: int | None
    """spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold, bytes"""
    advisory_partition_size_in_bytes: int | None
    """spark.sql.adaptive.advisoryPartitionSizeInBytes, bytes"""
    coalesce_partitions_parallelism_first: bool | None
    """spark.sql.adaptive.coalescePartitions.parallelismFirst"""
    coalesce_partitions_enabled: bool | None
    """spark.sql.adaptive.coalescePartitions.enabled"""
    coalesce_partitions_min_partition_size: int | None
    """spark.sql.adaptive.coalescePartitions.minPartitionSize, bytes"""
    coalesce_partitions_min_partition_num: int | None
    """spark.sql.adaptive.coalescePartitions.minPartitionNum; null when not set"""
    coalesce_partitions_initial_partition_num: int | None
    """spark.sql.adaptive.coalescePartitions.initialPartitionNum; null when not set"""
    local_shuffle_reader_enabled: bool | None
    """spark.sql.adaptive.localShuffleReader.enabled"""
    optimize_skews_in_rebalance_partitions_enabled: bool | None
    """spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled"""
    rebalance_partitions_small_partition_factor: float | None
    """spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor"""
    skew_join_enabled: bool | None
    """spark.sql.adaptive.skewJoin.enabled"""
    skewed_partition_factor: float | None
    """spark.sql.adaptive.skewJoin.skewedPartitionFactor"""
    skewed_partition_threshold_in_bytes: int | None
    """spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes, bytes"""
    force_optimize_skewed_join: bool | None
    """spark.sql.adaptive.forceOptimizeSkewedJoin"""
    prefer_sort_merge_join: bool | None
    """spark.sql.join.preferSortMergeJoin"""
    shuffled_hash_join_factor: int | None
    """spark.sql.shuffledHashJoinFactor"""
    shuffle_partitions: int | None
    """spark.sql.shuffle.partitions"""
    convert_sort_merge_join_to_shuffled_hash_join_enabled: bool | None
    """spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled; null before Spark 4.3"""
    optimizer_excluded_rules: tuple[str, ...] | None
    """spark.sql.optimizer.excludedRules, the rules that are switched off"""
    adaptive_optimizer_excluded_rules: tuple[str, ...] | None
    """spark.sql.adaptive.optimizer.excludedRules, the same of AQE's"""
    engine: str | None
    """the native engine that is switched on: COMET (Apache DataFusion Comet) or GLUTEN; null
    without one
    """


class Cluster(Protocol):
    """The facts `cluster`, at every point."""

    default_parallelism: int | None
    """SparkContext.defaultParallelism"""
    executors: int | None
    """executors registered now; 1 in local mode"""
    task_slots: int | None
    """tasks that run at once on one executor; null where an executor takes all its worker's cores
    and none is there yet
    """
    executor_memory_bytes: int | None
    """heap of an executor, bytes"""
    driver_memory_bytes: int | None
    """heap of the driver, bytes"""
    spark_version: str | None
    """the running Spark's version, e.g. 4.3.0"""


class JoinReorderChainRelation(Protocol):
    """One of `relations`."""

    position: int | None
    tables: tuple[str, ...] | None
    size_in_bytes: int | None
    row_count: int | None
    estimate_from: str | None
    filters: tuple[str, ...] | None
    filter_count: int | None
    history: History | None


class JoinReorderChainConditionPosition(Protocol):
    """One of `condition_positions`."""

    positions: tuple[int, ...] | None


class JoinReorderChainPruned(Protocol):
    """One of `pruned`."""

    position: int | None
    by: tuple[int, ...] | None
    beside: tuple[int, ...] | None
    is_large: bool | None


class JoinReorderChain(Protocol):
    """The facts `chain` at `join_reorder`."""

    num_relations: int | None
    """relations in the chain"""
    relations: tuple[JoinReorderChainRelation, ...] | None
    """the relations, in Spark's own order"""
    conditions: tuple[str, ...] | None
    """conditions of the joins, as SQL"""
    signatures: tuple[str, ...] | None
    """names the relations, in Spark's own order, on each run and on each Spark: 16 hex digits each,
    no two the same; empty where one cannot be read
    """
    condition_positions: tuple[JoinReorderChainConditionPosition, ...] | None
    """of each condition the positions of the relations that it is about"""
    cross_products: int | None
    """joins without a condition in Spark's own order"""
    spark_faults: tuple[str, ...] | None
    """numbers of those faults of the running Spark release that a changed plan of the chain could
    meet: SPARK_FAULT refuses the answers that lead there
    """
    pruned: tuple[JoinReorderChainPruned, ...] | None
    """relations of which Spark may read only some partitions, by what a broadcast holds (dynamic
    partition pruning)
    """


class JoinReorderCandidate(Protocol):
    """The facts `candidate` at `join_reorder`."""

    position: int | None
    """where Spark's own order has it; 0 = first"""
    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    size_in_bytes: int | None
    """Spark's estimate of its size, bytes: see estimate_from"""
    row_count: int | None
    """rows; null when Spark does not know"""
    estimate_from: str | None
    """where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"""
    filters: tuple[str, ...] | None
    """conditions of the filters beneath, as SQL, in plan order"""
    filter_count: int | None
    """number of filters, null checks (IS NOT NULL) left out"""
    history: History | None
    """what past runs measured of the same rows, or of such that differ in literals; null where they
    were never seen, and without a history: see the facts named history
    """
    conditions: tuple[str, ...] | None
    """conditions that join it to what is joined so far, as SQL"""
    distinct_count: int | None
    """distinct values of its column in the first of those conditions; null when not known"""
    joined_history: History | None
    """what past runs measured of the join of it and what is joined so far, in any order; null where
    that was never seen, for the first candidate, and without a history: see the facts named history
    """


class JoinReorderJoined(Protocol):
    """The facts `joined` at `join_reorder`."""

    num_relations: int | None
    """relations joined; 0 for the first candidate"""
    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    size_in_bytes: int | None
    """Spark's estimate of their join"""
    row_count: int | None
    """Spark's estimate of its rows; null without column statistics"""
    history: History | None
    """what past runs measured of the same rows, or of such that differ in literals; null where they
    were never seen, and without a history: see the facts named history
    """


class JoinReorderFacts(Protocol):
    """The facts at `join_reorder`.

    The order in which three or more relations are joined by inner joins. Asked when a query is
    optimised, for each chain of inner and cross joins without hints: a score is asked for each
    relation that could be joined next, a whole order once.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    chain: JoinReorderChain
    candidate: JoinReorderCandidate
    joined: JoinReorderJoined


class WriteDistributionWrite(Protocol):
    """The facts `write` at `write_distribution`."""

    command: str | None
    """Spark's command, e.g. InsertIntoHadoopFsRelationCommand"""
    format: str | None
    """format of the files, e.g. parquet; null when it has no name"""
    table: str | None
    """the table that is written to; null for files of no table"""
    mode: str | None
    """APPEND, OVERWRITE, ERROR_IF_EXISTS or IGNORE; null when not known"""
    columns: tuple[str, ...] | None
    """columns of the rows, in the order of the write"""
    partition_columns: tuple[str, ...] | None
    """partition columns"""
    dynamic_columns: tuple[str, ...] | None
    """those of the partition columns whose values come from the rows"""
    constant_columns: tuple[str, ...] | None
    """those of the dynamic columns that have the same value in all rows: nothing is distributed by
    them
    """
    ambiguous_columns: tuple[str, ...] | None
    """those of the dynamic columns that are floating-point numbers, timestamps, bytes or text with
    a collation: values may be equal and yet have two directories (0.0 and -0.0), or differ and
    share one
    """
    transforms: tuple[str, ...] | None
    """functions of columns that a table of the DataSource V2 interface is partitioned by, e.g.
    days(ts)
    """
    static_partitions: tuple[str, ...] | None
    """partition columns whose value the command gives, as name=value, sorted; null for a table of
    the DataSource V2 interface: there they are constant_columns
    """
    overwrites_dynamically: bool | None
    """whether an overwrite leaves partitions that get no rows
    (spark.sql.sources.partitionOverwriteMode)
    """
    bucket_columns: tuple[str, ...] | None
    """columns of the table's buckets"""
    num_buckets: int | None
    """buckets of the table; null when it has none"""
    required_distribution: str | None
    """what is said of the distribution already: CLUSTERED or ORDERED = Spark shuffles the rows, as
    the table requires; AS_IS = the write has the option use-table-distribution-and-ordering =
    false; null = nothing
    """
    required_ordering: tuple[str, ...] | None
    """what the rows of a task have to be sorted by beside the partition columns, as SQL"""
    max_concurrent_writers: int | None
    """spark.sql.maxConcurrentOutputFileWriters: files that a task has open at once; 0 = one, and
    the rows are sorted by the dynamic columns first; null for a table of the DataSource V2
    interface
    """
    fans_out: bool | None
    """whether a task may have a file open in each partition at once: a partitioned table of the
    DataSource V2 interface that requires no order of the rows
    """
    is_adaptive: bool | None
    """whether AQE is on (spark.sql.adaptive.enabled), without which no partitions are merged or
    split
    """
    is_streaming: bool | None
    """whether a streaming query writes"""


class WriteDistributionInput(Protocol):
    """The facts `input` at `write_distribution`."""

    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    size_in_bytes: int | None
    """Spark's estimate of its size, bytes, before partitions of tables are pruned: see
    estimate_from
    """
    row_count: int | None
    """Spark's estimate of its rows; null when it has none"""
    row_bytes: int | None
    """Spark's estimate of one row's size, by its columns' types, bytes
    (EstimationUtils.getSizePerRow)
    """
    estimate_from: str | None
    """where size_in_bytes comes from: STATISTICS, FILES or GUESS, as at join_selection"""
    distinct_count: int | None
    """distinct values of the dynamic column (column statistics); null when not known and for
    several columns
    """
    num_tasks: int | None
    """tasks that will read the query's sources, about; null above a shuffle, where AQE decides
    that, and when not known
    """
    last_shuffle: str | None
    """what shuffles last, as far as the logical plan tells: AGGREGATE, JOIN (which may turn out to
    be a broadcast), WINDOW, SORT, REPARTITION, LIMIT; null for nothing
    """
    shuffled_by: tuple[str, ...] | None
    """written columns that the last shuffle distributes by: rows with the same values are in one
    task
    """
    user_distribution: str | None
    """what the query's author said that the write keeps: REPARTITION, COALESCE, REBALANCE, SORT,
    SORT_WITHIN_PARTITIONS; RDD where the rows are an RDD's or a checkpoint's, as that has them;
    null for nothing
    """
    is_limited: bool | None
    """whether there is a LIMIT, OFFSET or TABLESAMPLE in the query"""
    is_deterministic: bool | None
    """whether a task that runs again gives the same rows, as far as the expressions tell"""
    distributing_columns: tuple[str, ...] | None
    """written columns that rows can be distributed by: not maps and the like, nor what may differ
    when a task runs again, as sums of floating-point numbers do
    """
    spreads_evenly: bool | None
    """whether rows can be distributed without columns: Spark sorts each task's rows for it
    (spark.sql.execution.sortBeforeRepartition), which takes rows that do not differ when a task
    runs again
    """
    history: History | None
    """what past runs measured of the same rows, or of such that differ in literals; null where they
    were never seen, and without a history: see the facts named history
    """


class WriteDistributionFacts(Protocol):
    """The facts at `write_distribution`.

    How rows are distributed before they are written to files. Asked when a query is optimised, once
    for each command that writes files: INSERT, CREATE TABLE AS SELECT, INSERT OVERWRITE DIRECTORY,
    and DataFrame.write; when it is planned, for each write to a table of the DataSource V2
    interface that says what it requires of the rows.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    write: WriteDistributionWrite
    input: WriteDistributionInput


@dataclass(frozen=True, kw_only=True)
class WriteDistribution(_Decision):
    """The decision at `write_distribution`.

    How to distribute the rows; rebalance may stand alone, as true or false.
    """

    rebalance: bool | None = None
    """true = the rows are shuffled before they are written, as by the hint REBALANCE: AQE merges
    small partitions and splits large ones; false = they are written as they are
    """
    columns: Sequence[str | None] | None = None
    """written columns to shuffle by, so that equal values come to few tasks; an empty array spreads
    the rows evenly; null = the dynamic partition columns
    """
    target_bytes: int | None = None
    """size that a task should write, shuffle bytes; null =
    spark.sql.adaptive.advisoryPartitionSizeInBytes
    """


class JoinSelectionJoin(Protocol):
    """The facts `join` at `join_selection`."""

    id: int | None
    """stable for the life of the query, unique in the driver"""
    type: str | None
    """INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"""
    key_count: int | None
    """number of equality keys; 0 for a join without"""
    key_types: tuple[str, ...] | None
    """SQL types of the equality keys"""
    can_merge: bool | None
    """whether a sort-merge join can run it: it has equality keys of types that can be sorted"""
    has_condition: bool | None
    """whether there is a condition beside the equality keys"""
    condition_can_throw: bool | None
    """whether that condition could throw for some rows, by a division under ANSI, say"""
    condition: str | None
    """the whole join condition, as SQL; null for none"""
    is_null_aware: bool | None
    """whether it is a NOT IN on one column that Spark runs by its own hash join for these
    (spark.sql.optimizeNullAwareAntiJoin)
    """
    left_hint: str | None
    """the user's hint on the left side"""
    right_hint: str | None
    """the user's hint on the right side"""
    is_replan: bool | None
    """whether the query runs already"""
    spark_faults: tuple[str, ...] | None
    """numbers of those faults of the running Spark release that a changed plan of the join could
    meet: SPARK_FAULT refuses the answers that lead there
    """
    is_in_pruning_side: bool | None
    """whether the join is part of a side that prunes so: Spark plans such a side twice, and prunes
    only where both plans are alike
    """


class JoinSelectionLeft(Protocol):
    """The facts `left` at `join_selection`."""

    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    size_in_bytes: int | None
    """rows' size, uncompressed, bytes, as Spark has it: see estimate_from; columns that are not
    read are left out
    """
    row_count: int | None
    """rows; null when Spark does not know"""
    row_bytes: int | None
    """Spark's estimate of one row's size, by its columns' types, bytes
    (EstimationUtils.getSizePerRow)
    """
    estimate_from: str | None
    """where size_in_bytes comes from: STAGE = measured, by a finished stage; STATISTICS = row
    counts of the tables (ANALYZE TABLE, caches, local data); FILES = the files' sizes, compressed,
    whatever filters leave; GUESS = a size that is not known, or the product that Spark takes for a
    join's
    """
    filters: tuple[str, ...] | None
    """conditions of the filters beneath, as SQL, in plan order"""
    join_count: int | None
    """joins beneath, those in finished stages included"""
    distinct_count: int | None
    """distinct values of the join's key on this side (column statistics); null when not known,
    without equality keys, and with several
    """
    is_distributed: bool | None
    """whether it is known already that rows with equal keys are in one partition: a bucketed table,
    or a shuffle, aggregate or window on the keys
    """
    is_sorted: bool | None
    """whether a finished stage or a bucketed table has its partitions sorted by the keys already"""
    max_bytes: int | None
    """largest partition of the finished shuffle beneath, compressed bytes"""
    shuffle_bytes: int | None
    """all partitions of the finished shuffle beneath, compressed bytes"""
    run_time_hint: str | None
    """what Spark's own run-time rule, or a dynamic_join_selection policy, says of this side; null
    before the query runs
    """
    can_broadcast: bool | None
    """whether the join's type and condition let this side be broadcast"""
    can_shuffle_hash: bool | None
    """whether the join's type and keys let a shuffled hash join build from this side"""
    broadcasts_by_size: bool | None
    """whether Spark broadcasts a side of this size (canBroadcastBySize): up to
    spark.sql.autoBroadcastJoinThreshold or, measured, spark.sql.adaptive.autoBroadcastJoinThreshold
    """
    hashes_by_size: bool | None
    """whether Spark builds hash tables from a side of this size (canBuildLocalHashMapBySize)"""
    is_much_smaller: bool | None
    """whether it is smaller than the other side by spark.sql.shuffledHashJoinFactor (muchSmaller)
    """
    prunes: bool | None
    """whether Spark's own plan broadcasts this side, and reads only those partitions of the other
    side's tables for which the broadcast has rows (dynamic partition pruning)
    """
    signature: str | None
    """names the rows of this side on each run, under each order of joins and on each Spark: 16 hex
    digits; null where the plan cannot be read
    """
    history: History | None
    """what past runs measured of the same rows, or of such that differ in literals; null where they
    were never seen, and without a history: see the facts named history
    """


class JoinSelectionRight(JoinSelectionLeft, Protocol):
    """The facts `right` at `join_selection`: those of `JoinSelectionLeft`."""


class JoinSelectionSpark(Protocol):
    """The facts `spark` at `join_selection`."""

    strategy: str | None
    """its strategy, in the words of this decision"""
    build_side: str | None
    """LEFT or RIGHT; null where the strategy has none"""
    reason: str | None
    """why: HINT (the user's), SIZE (a side is small enough to broadcast), MUCH_SMALLER (a hash
    table rather than a sort), RUN_TIME (measured: Spark's own run-time rule), NULL_AWARE (NOT IN),
    SORTABLE (neither is small), CROSS (nothing to sort by), LAST_RESORT (nothing else is possible)
    """


class JoinSelectionFacts(Protocol):
    """The facts at `join_selection`.

    The strategy and build side of a join, from what is estimated of its sides before they run.
    Asked for each join, with or without equality keys, at the first planning and, as long as no
    side of it is broadcast, at re-plans that know more of its sides.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    join: JoinSelectionJoin
    left: JoinSelectionLeft
    right: JoinSelectionRight
    spark: JoinSelectionSpark


JoinSelectionStrategy = Literal[
    "BROADCAST",
    "SHUFFLE_HASH",
    "SHUFFLE_MERGE",
    "SHUFFLE_REPLICATE_NL",
]


@dataclass(frozen=True, kw_only=True)
class JoinSelection(_Decision):
    """The decision at `join_selection`.

    How to run the join; the strategy alone, as a word, will do; an answer that is null keeps
    Spark's choice.
    """

    strategy: JoinSelectionStrategy | None = None
    """the strategy, in Spark's hint words; null = Spark's"""
    build_side: str | None = None
    """LEFT or RIGHT: the side that is broadcast or that the hash table is built from; null = the
    smaller of those that the join admits, as Spark does
    """


class ShufflePartitionsShuffles(Protocol):
    """The facts `shuffles` at `shuffle_partitions`."""

    num_shuffles: int | None
    """shuffles in the group"""
    num_partitions: int | None
    """Spark's number of partitions"""
    partitioning: str | None
    """HASH, or RANGE for a global sort"""
    keys: tuple[str, ...] | None
    """what the first shuffle partitions by, as SQL"""
    key_count: int | None
    """number of keys"""
    distinct_count: int | None
    """distinct values of the key, the largest of all shuffles (column statistics); null when not
    known and for several keys
    """
    size_in_bytes: int | None
    """Spark's estimate of what all of them carry, uncompressed bytes; above a join without
    statistics the product of its sides; null when Spark has none
    """
    max_size_in_bytes: int | None
    """the same of the largest of them"""
    row_count: int | None
    """Spark's estimate of the rows in all of them; null when it has none"""
    input_bytes: int | None
    """the sum of the estimates of tables and of the measured finished stages beneath, columns that
    are not read left out, bytes; tables count as they are stored, often compressed
    """
    known_bytes: int | None
    """uncompressed bytes of the finished stages beneath; null when there are none"""
    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    feeds: tuple[str, ...] | None
    """what the stage that reads them does, sorted: AGGREGATE, EXPAND, GENERATE, GROUPED_UDF (a
    function for each group, as in applyInPandas), JOIN, LIMIT, PYTHON, SORT (global), UNION,
    WINDOW, WRITE
    """
    spark_faults: tuple[str, ...] | None
    """numbers of those faults of the running Spark release that a changed plan of a join that Spark
    may make a shuffled hash join by the size of partitions could meet: SPARK_FAULT refuses the
    answers that lead there
    """
    signatures: tuple[str, ...] | None
    """names the shuffles of the group on each run and on each Spark: 16 hex digits for each that
    can be read, sorted
    """
    history: History | None
    """what past runs measured of the group's shuffles, of that one which carried most, and of the
    stage that read it; null where none was ever seen, and without a history: see the facts named
    history
    """


class ShufflePartitionsFacts(Protocol):
    """The facts at `shuffle_partitions`.

    The number of partitions of shuffles that Spark adds to a query. Asked for each group of
    shuffles that must have as many partitions, at the first planning and, until they start, at re-
    plans that know more of them.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    shuffles: ShufflePartitionsShuffles


class DynamicJoinSelectionJoin(Protocol):
    """The facts `join` at `dynamic_join_selection`."""

    id: int | None
    """stable for the life of the query, unique in the driver"""
    type: str | None
    """INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"""
    key_count: int | None
    """number of equality keys"""
    key_types: tuple[str, ...] | None
    """SQL types of the keys, e.g. bigint"""
    keys_are_orderable: bool | None
    """whether the keys can be sorted, for a sort-merge join"""
    has_condition: bool | None
    """whether there is a condition beside the equality keys"""
    condition_can_throw: bool | None
    """whether that condition could throw for some rows, by a division under ANSI, say"""
    left_hint: str | None
    """the user's strategy hint on the left side, in Spark's word"""
    right_hint: str | None
    """the user's strategy hint on the right side"""
    spark_faults: tuple[str, ...] | None
    """numbers of those faults of the running Spark release that a changed plan of the join could
    meet: SPARK_FAULT refuses the answers that lead there
    """
    is_in_pruning_side: bool | None
    """whether the join is part of a side that prunes so: Spark plans such a side twice, and prunes
    only where both plans are alike
    """
    engine_merges: bool | None
    """whether the native engine would run it as a sort-merge join; null without an engine, and
    while a side runs
    """


class DynamicJoinSelectionSide(Protocol):
    """The facts `side` at `dynamic_join_selection`."""

    is_left: bool | None
    """whether it is the join's left side"""
    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    is_finished: bool | None
    """whether its shuffle has run, with statistics"""
    is_plain_stage: bool | None
    """whether nothing stands between the shuffle and the join (Spark's own rule looks at these
    only); null when there is no shuffle beneath
    """
    is_broadcast: bool | None
    """whether it is a broadcast stage already"""
    size_in_bytes: int | None
    """rows' size, uncompressed, bytes; measured for a plain stage"""
    row_count: int | None
    """rows; measured for a plain stage, null when not known"""
    row_bytes: int | None
    """Spark's estimate of one row's size, by its columns' types, bytes
    (EstimationUtils.getSizePerRow)
    """
    num_partitions: int | None
    """partitions of the shuffle"""
    num_mappers: int | None
    """map tasks that wrote the shuffle"""
    bytes_by_partition_id: memoryview | None
    """shuffle bytes (compressed) of each partition, as MapOutputStatistics has them"""
    bytes_are_exact: bool | None
    """false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports
    averages for small blocks
    """
    shuffle_bytes: int | None
    """sum of bytes_by_partition_id"""
    max_bytes: int | None
    """largest of bytes_by_partition_id"""
    median_bytes: int | None
    """median of bytes_by_partition_id, at least 1 (Utils.median)"""
    non_empty_ratio: float | None
    """share of the partitions that are not empty, 0 to 1"""
    can_broadcast: bool | None
    """whether the join type lets this side be broadcast"""
    can_shuffle_hash: bool | None
    """whether the join's type and keys let a shuffled hash join build from this side"""
    prunes: bool | None
    """whether Spark's own plan broadcasts this side, and reads only those partitions of the other
    side's tables for which the broadcast has rows (dynamic partition pruning)
    """
    signature: str | None
    """names the rows of this side on each run, under each order of joins and on each Spark: 16 hex
    digits; null where the plan cannot be read
    """
    history: History | None
    """what past runs measured of the same rows, or of such that differ in literals; null where they
    were never seen, and without a history: see the facts named history
    """
    engine_hashes: bool | None
    """whether the native engine would run it as a shuffled hash join that builds from this side;
    null without an engine, and while a side runs
    """


class DynamicJoinSelectionOther(DynamicJoinSelectionSide, Protocol):
    """The facts `other` at `dynamic_join_selection`: those of `DynamicJoinSelectionSide`."""


class DynamicJoinSelectionSpark(Protocol):
    """The facts `spark` at `dynamic_join_selection`."""

    hint: str | None
    """what Spark's own rule says to this side, given the user's hints only; null = nothing"""
    conversion: str | None
    """4.3: side (LEFT, RIGHT) that Spark would build from if it turned a sort-merge join here into
    a shuffled hash join, NONE if it would not; null when not predictable and before 4.3
    """


class DynamicJoinSelectionFacts(Protocol):
    """The facts at `dynamic_join_selection`.

    The join strategy of a join while the query runs, from the measured sizes of its sides. Asked
    for each side with a finished shuffle of each equi-join, left then right, whenever what is known
    of the join has changed.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    join: DynamicJoinSelectionJoin
    side: DynamicJoinSelectionSide
    other: DynamicJoinSelectionOther
    spark: DynamicJoinSelectionSpark


DynamicJoinSelection = Literal[
    "BROADCAST",
    "SHUFFLE_HASH",
    "PREFER_SHUFFLE_HASH",
    "SHUFFLE_MERGE",
    "NO_BROADCAST_HASH",
]


class SkewJoinJoin(Protocol):
    """The facts `join` at `skew_join`."""

    id: int | None
    """stable for the life of the query, unique in the driver"""
    type: str | None
    """INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"""
    strategy: str | None
    """SortMergeJoin, or ShuffledHashJoin or BroadcastHashJoin with BuildLeft or BuildRight"""
    key_count: int | None
    """number of equality keys"""
    has_condition: bool | None
    """whether there is a condition beside the equality keys"""
    shuffles: int | None
    """shuffles that the joins of this stage read together; Spark's own rule splits where it is 2,
    and from 4.2 on where a broadcast join's streamed side is the only one
    """
    is_read_locally: bool | None
    """whether Spark will read a broadcast join's streamed side where it was written, each task some
    of one map task's output (spark.sql.adaptive.localShuffleReader.enabled): no partition is one
    task's
    """


class SkewJoinLeft(Protocol):
    """The facts `left` at `skew_join`."""

    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    num_partitions: int | None
    """partitions of the shuffle"""
    num_mappers: int | None
    """map tasks that wrote the shuffle: a partition has no more parts than these"""
    bytes_by_partition_id: memoryview | None
    """shuffle bytes (compressed) of each partition, as MapOutputStatistics has them"""
    bytes_are_exact: bool | None
    """false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports
    averages for small blocks
    """
    shuffle_bytes: int | None
    """sum of bytes_by_partition_id"""
    max_bytes: int | None
    """largest of bytes_by_partition_id"""
    median_bytes: int | None
    """median of bytes_by_partition_id, at least 1 (Utils.median)"""
    p90_bytes: int | None
    """90th percentile of bytes_by_partition_id (nearest rank)"""
    p99_bytes: int | None
    """99th percentile of bytes_by_partition_id (nearest rank)"""
    non_empty_ratio: float | None
    """share of the partitions that are not empty, 0 to 1"""
    can_split: bool | None
    """whether the join types up to the stage's topmost join let this side's partitions be split"""
    signature: str | None
    """names the rows of this side on each run, under each order of joins and on each Spark: 16 hex
    digits; null where the plan cannot be read
    """
    history: History | None
    """what past runs measured of this shuffle, and of the stage that read it; null where it was
    never seen, and without a history: see the facts named history
    """


class SkewJoinRight(SkewJoinLeft, Protocol):
    """The facts `right` at `skew_join`: those of `SkewJoinLeft`."""


class SkewJoinSpark(Protocol):
    """The facts `spark` at `skew_join`."""

    left_skewed_partitions: int | None
    """partitions of the left side that it splits"""
    right_skewed_partitions: int | None
    """partitions of the right side that it splits"""
    tasks: int | None
    """tasks that read the join's shuffles, before any coalescing"""


class SkewJoinFacts(Protocol):
    """The facts at `skew_join`.

    How the large partitions of a join are split, so that several tasks share them. Asked for each
    sort-merge, shuffled hash or broadcast hash join that reads a shuffle directly, once all
    shuffles and broadcasts of its stage have run, and again when a fact has changed.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    join: SkewJoinJoin
    left: SkewJoinLeft
    right: SkewJoinRight
    spark: SkewJoinSpark


@dataclass(frozen=True, kw_only=True)
class SkewJoin(_Decision):
    """The decision at `skew_join`.

    How to split; a field that is null keeps Spark's value, an answer that is null keeps Spark's
    plan.
    """

    skew_factor: float | None = None
    """a partition is skewed if it is larger than this many medians of its side and than the side's
    threshold; null = spark.sql.adaptive.skewJoin.skewedPartitionFactor
    """
    left_threshold_bytes: int | None = None
    """bytes above which a left partition can be skewed; null =
    spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes
    """
    right_threshold_bytes: int | None = None
    """the same for the right side"""
    left_target_bytes: int | None = None
    """bytes of the parts that a skewed left partition is split into; null = the mean of those that
    are not skewed, at least spark.sql.adaptive.advisoryPartitionSizeInBytes
    """
    right_target_bytes: int | None = None
    """the same for the right side"""
    max_splits: int | None = None
    """most parts of one partition; null = no such bound"""
    force: bool | None = None
    """whether to split even if that takes a further shuffle, which AQE's cost evaluator must let
    pass; null = spark.sql.adaptive.forceOptimizeSkewedJoin
    """
    left_splits: Sequence[int | None] | None = None
    """into how many parts to split each left partition, by partition id; 1 or null = not at all.
    Replaces factor, threshold and target of this side
    """
    right_splits: Sequence[int | None] | None = None
    """the same for the right side"""


class CostEvaluationPlan(Protocol):
    """The facts `plan` at `cost_evaluation`."""

    is_current: bool | None
    """whether it is the plan that runs now"""
    shuffles: int | None
    """shuffles that are not started"""
    new_shuffles: int | None
    """of these, the ones that the current plan lacks: other keys, or over other tables"""
    broadcasts: int | None
    """broadcasts that are not started"""
    sort_merge_joins: int | None
    """sort-merge joins that are not in a stage yet"""
    shuffled_hash_joins: int | None
    """shuffled hash joins that are not in a stage yet"""
    broadcast_hash_joins: int | None
    """broadcast hash joins that are not in a stage yet"""
    nested_loop_joins: int | None
    """broadcast nested loop joins and Cartesian products that are not in a stage yet"""
    skew_joins: int | None
    """joins, not in a stage yet, whose skewed partitions are split"""
    local_sorts: int | None
    """sorts within partitions that are not in a stage yet"""
    finished_shuffles: int | None
    """finished shuffles that it reads"""
    known_bytes: int | None
    """uncompressed bytes of the finished shuffles, broadcasts and cached tables that it reads"""
    estimated_bytes: int | None
    """Spark's estimate of what the shuffles and broadcasts that are not started will carry, bytes;
    null when there are none or one is not known
    """
    scans: int | None
    """tables, files and other leaves that are not read yet"""
    pruning_filters: int | None
    """filters on these that prune partitions by what a broadcast of the plan holds (dynamic
    partition pruning)
    """


class CostEvaluationCurrent(CostEvaluationPlan, Protocol):
    """The facts `current` at `cost_evaluation`: those of `CostEvaluationPlan`."""


class CostEvaluationSpark(Protocol):
    """The facts `spark` at `cost_evaluation`."""

    cost: float | None
    """Spark's own cost of the plan, in shuffles: its shuffles, less 1,048,576 for each skew join
    where spark.sql.adaptive.forceOptimizeSkewedJoin is on, plus 1/1,048,576 for each local sort
    where counts_local_sorts; null when the application's own evaluator gives no such number
    """
    current_cost: float | None
    """the same of the current plan; null when that is the one asked about"""
    counts_local_sorts: bool | None
    """whether Spark counts local sorts between plans of as many shuffles; null before Spark 4.3"""


class CostEvaluationFacts(Protocol):
    """The facts at `cost_evaluation`.

    The cost of a plan, by which AQE adopts a re-plan or keeps the plan it has. Asked at each re-
    plan that differs from the current plan, for the current plan and then for the re-plan.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    plan: CostEvaluationPlan
    current: CostEvaluationCurrent
    spark: CostEvaluationSpark


class PartitionCoalescingStage(Protocol):
    """The facts `stage` at `partition_coalescing`."""

    shuffles: tuple[int, ...] | None
    """the group's shuffles, numbered as in the plan's text (ShuffleQueryStage 3)"""
    num_shuffles: int | None
    """shuffles in the group"""
    is_final: bool | None
    """whether the stage gives the query's, or a subquery's, result"""
    is_rebalance: bool | None
    """whether the group is a REBALANCE"""
    has_sort: bool | None
    """whether a sort runs above the group in the stage"""
    has_aggregate: bool | None
    """whether an aggregation does"""
    has_join: bool | None
    """whether a join does"""
    has_window: bool | None
    """whether a window function does"""
    has_generate: bool | None
    """whether an explode or another generator does"""
    has_python_udf: bool | None
    """whether Python code does (UDF, mapInPandas, ...)"""
    has_jvm_udf: bool | None
    """whether JVM code that is not Spark's does: a Scala, Java or Hive UDF, a function of a
    library, an operation on the objects of a Dataset
    """
    has_grouped_udf: bool | None
    """whether a function does that is called once for each group (applyInPandas, cogroup,
    mapGroups, UDFs in pandas that aggregate)
    """
    has_loop: bool | None
    """whether an expression does whose steps for a row do not follow from the row's bytes:
    sequence, array_repeat, a lambda over a constant array or within another lambda
    """
    has_exploding_join: bool | None
    """whether a Cartesian product or a broadcast nested loop join does: from 4.0 on Spark then
    takes the minimum size for the target
    """
    is_write: bool | None
    """whether the stage writes a table or files"""
    write_format: str | None
    """format that it writes, e.g. parquet; null when not known"""
    requested_partition_bytes: int | None
    """size that the data source that is written to asks for, or a `write_distribution` policy,
    bytes; null when none does
    """
    shuffle_bytes: int | None
    """shuffle bytes of all groups of the stage: Spark shares its minimum number among them"""


class PartitionCoalescingShuffle(Protocol):
    """The facts `shuffle` at `partition_coalescing`."""

    tables: tuple[str, ...] | None
    """names of the tables or files beneath, in plan order"""
    num_partitions: int | None
    """partitions of each shuffle"""
    num_mappers: int | None
    """map tasks that wrote the shuffles, all together"""
    bytes_by_partition_id: memoryview | None
    """shuffle bytes (compressed) of each partition, summed over the shuffles"""
    bytes_are_exact: bool | None
    """false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports
    averages for small blocks
    """
    shuffle_bytes: int | None
    """sum of bytes_by_partition_id"""
    max_bytes: int | None
    """largest of bytes_by_partition_id"""
    median_bytes: int | None
    """median of bytes_by_partition_id, at least 1 (Utils.median)"""
    non_empty_ratio: float | None
    """share of the partitions that are not empty, 0 to 1"""
    row_count: int | None
    """rows; null when not known"""
    size_in_bytes: int | None
    """rows' size, uncompressed, bytes"""
    signatures: tuple[str, ...] | None
    """names the shuffles of the group on each run and on each Spark: 16 hex digits for each that
    can be read, sorted
    """
    history: History | None
    """what past runs measured of the group's shuffles, of that one which carried most, and of the
    stage that read it; null where none was ever seen, and without a history: see the facts named
    history
    """


class PartitionCoalescingSpark(Protocol):
    """The facts `spark` at `partition_coalescing`."""

    num_partitions: int | None
    """tasks that would read it"""
    is_local_read: bool | None
    """whether they would read it where it was written"""


class PartitionCoalescingFacts(Protocol):
    """The facts at `partition_coalescing`.

    How many tasks read finished shuffles, from the measured sizes of their partitions. Asked once
    per stage for each group of finished shuffles that its tasks read together, right before it is
    run; not for shuffles whose number of partitions the query fixes.
    """

    query: Query
    conf: Conf
    cluster: Cluster
    stage: PartitionCoalescingStage
    shuffle: PartitionCoalescingShuffle
    spark: PartitionCoalescingSpark


@dataclass(frozen=True, kw_only=True)
class PartitionCoalescing(_Decision):
    """The decision at `partition_coalescing`.

    The values of Spark's own settings for this group of shuffles.
    """

    target_bytes: int | None = None
    """size that a task should read, shuffle bytes; of a REBALANCE also the size above which a
    partition is split (spark.sql.adaptive.advisoryPartitionSizeInBytes)
    """
    min_partition_bytes: int | None = None
    """smallest size of the target after Spark has lowered it for parallelism, shuffle bytes
    (spark.sql.adaptive.coalescePartitions.minPartitionSize)
    """
    min_partitions: int | None = None
    """number of tasks below which the target is lowered; 1 = the target alone rules
    (spark.sql.adaptive.coalescePartitions.minPartitionNum)
    """
    local_read: bool | None = None
    """whether shuffles that need no particular partitioning are read where they were written
    (spark.sql.adaptive.localShuffleReader.enabled)
    """
    keep: bool | None = None
    """true = no coalescing, the shuffles' own partitions; false = coalescing even where the session
    has it off (spark.sql.adaptive.coalescePartitions.enabled)
    """
