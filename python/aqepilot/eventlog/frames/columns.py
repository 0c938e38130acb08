"""The columns of what is read of event logs: names, types and meanings.

Logs and tables of months are read with them, so a column is only ever added, never renamed and
never given another meaning; `VERSION` rises when one is.
"""

from __future__ import annotations

from typing import NamedTuple

from aqepilot import catalog

VERSION = 6


class LogColumn(NamedTuple):
    """A column.

    Attributes:
        name: Its name.
        type: Its Spark SQL type.
        meaning: What it holds, its unit, and what null means.
    """

    name: str
    type: str
    meaning: str


_OF_LOG = (
    ("log", "string", "the log: its file, or its folder where Spark rolls it"),
    ("app_id", "string", "the application's id; null when the log does not say"),
    ("app_attempt_id", "string", "the attempt of the application, on YARN; null elsewhere"),
)
_TASKS = (
    ("tasks", "bigint", "task attempts that ended"),
    ("failed_tasks", "bigint", "of these, those that failed; killed ones are not counted"),
    ("killed_tasks", "bigint", "of these, those that were killed, as a stage was cancelled or "
     "another attempt was faster"),
    ("task_ms", "bigint", "run time of tasks, milliseconds: the time they had a core and ran"),
    ("slot_ms", "bigint", "from a task's launch to its end, milliseconds: what it kept a core "
     "from others, with the time to start it and to fetch its result"),
    ("cpu_ms", "bigint", "CPU time of tasks, milliseconds"),
    ("gc_ms", "bigint", "what the JVM collected garbage for while tasks ran, milliseconds"),
    ("input_bytes", "bigint", "read from sources"),
    ("output_bytes", "bigint", "written to sinks"),
    ("shuffle_read_bytes", "bigint", "read from shuffles, remote and local"),
    ("shuffle_write_bytes", "bigint", "written to shuffles"),
    ("memory_spill_bytes", "bigint", "spilled, as it was in memory"),
    ("disk_spill_bytes", "bigint", "spilled, as it was on disk"),
    ("peak_execution_memory_bytes", "bigint", "the largest of any one task"),
)  # fmt: skip


def _columns(*groups: tuple[tuple[str, str, str], ...]) -> tuple[LogColumn, ...]:
    return tuple(LogColumn(*column) for group in groups for column in group)


APPLICATIONS = _columns(
    _OF_LOG,
    (
        ("app_name", "string", "spark.app.name"),
        ("user", "string", "who ran it"),
        ("spark_version", "string", "e.g. 4.3.0"),
        ("started", "timestamp", "when the application started; null when the log does not say"),
        ("ended", "timestamp", "when it ended; null while it runs, and when it broke off"),
        ("executors", "array<struct<id: string, cores: int, added: timestamp, removed: timestamp, "
         "memory_mib: bigint>>",
         "its executors; `removed` is null of those that were there at the end; `memory_mib` is "
         "what the resource profile asks for: heap, and of overhead, off-heap and Python's memory "
         "what is set; null in local mode, and in tables of before version 4"),
        ("lines", "bigint", "lines of the log"),
        ("unreadable_lines", "bigint", "of these, those that are no whole event: the last one of a "
         "log that is still written or was cut off, and all lines of a file that is no log"),
        ("problem", "string", "why a file of it could not be read, or not to its end; null when "
         "all could"),
    ),
)  # fmt: skip

STAGES = _columns(
    _OF_LOG,
    (
        ("stage_id", "bigint", "the stage, as in Spark's UI"),
        ("stage_attempt_id", "bigint", "0; higher when it was tried again"),
        ("execution_id", "bigint", "the query that ran it; null outside queries"),
        ("name", "string", "as in Spark's UI"),
        ("submitted", "timestamp", "when it was submitted"),
        ("completed", "timestamp", "when it ended; null when the log ends before"),
        ("failure", "string", "why it failed; null when it did not"),
        ("num_tasks", "bigint", "tasks that it has; attempts are counted in `tasks`"),
    ),
    _TASKS,
    (
        ("max_task_ms", "bigint", "run time of its longest successful task, milliseconds"),
        ("median_task_ms", "bigint", "median run time of its successful tasks, milliseconds"),
        ("task_slot_ms", "array<int>", "from launch to end of each successful task, milliseconds, "
         "in the order of their launches; null in tables of before version 3, as what follows"),
        ("slots", "int", "the most successful tasks that ran at once"),
        ("waiting_ms", "bigint", "what these slots waited for the last tasks after the last "
         "launch, milliseconds"),
        ("lost_slot_ms", "bigint", "of `slot_ms`, that of tasks that failed or were killed"),
        ("spilled_slot_ms", "bigint", "of `slot_ms`, that of tasks that spilled"),
        ("tiny_tasks", "bigint", "successful tasks that ran for less than 200 ms"),
        ("tiny_start_ms", "bigint", "what these kept slots for beside their run time, "
         "milliseconds: to be started, and for their results"),
        ("operators", "array<string>", "what of a plan made its RDDs, by name, as Spark's UI draws "
         "it: `Window`, `WholeStageCodegen (3)`; null in tables of before version 5, as what "
         "follows"),
        ("rdd_partitions", "int", "the most partitions of an RDD in it: more than `num_tasks` "
         "where a `coalesce` merges them"),
        ("has_shuffled", "boolean", "whether an RDD of it is read from a shuffle, or was before it "
         "was cached"),
        ("shuffle_read_records", "bigint", "rows read from shuffles"),
        ("max_task_records", "bigint", "of these, those of the successful task that read most"),
        ("writing_tasks", "bigint", "successful tasks that wrote to sinks, each a file or more"),
    ),
)  # fmt: skip

QUERIES = _columns(
    _OF_LOG,
    (
        ("execution_id", "bigint", "the query, as in Spark's UI"),
        ("root_execution_id", "bigint", "the query that it is a part of; its own id when of none"),
        ("description", "string", "as in Spark's UI"),
        ("fingerprint", "string", "the same for the same query on any day; null of queries without "
         "a decision of aqepilot's"),
        ("started", "timestamp", "when it started"),
        ("ended", "timestamp", "when it ended; null when the log ends before"),
        ("succeeded", "boolean", "whether it ended without an error; null when the log ends "
         "before"),
        ("error", "string", "Spark's message; null when there was none"),
        ("wall_ms", "bigint", "from its start to its end, milliseconds; null when the log ends "
         "before"),
        ("executor_core_ms", "bigint", "milliseconds of cores that executors had while it ran, "
         "busy or not; queries that ran at once each count them; null when the log ends before"),
        ("executor_memory_mib_s", "bigint", "MiB of memory that executors had while it ran, times "
         "seconds; null when the log ends before, and where `memory_mib` of one is"),
        ("planning_ms", "bigint", "all phases of Spark's QueryPlanningTracker, milliseconds; what "
         "AQE plans anew while it runs is in none of them; null of queries without a decision"),
        ("asked_us", "double", "time for all answers and facts of its decisions, microseconds; "
         "null of queries without a decision"),
        ("stages", "bigint", "stage attempts that it ran"),
        ("retried_stages", "bigint", "of these, those that were not the first attempt"),
    ),
    _TASKS,
    (
        ("max_over_median", "double", "the longest task over the median, of the stage where that "
         "is most; null where no stage had three tasks"),
        ("joins", "array<string>", "the joins of its last plan, root first: "
         "`ShuffledHashJoin BuildRight`"),
        ("join_nodes", "array<struct<operator: string, scope: string, type: string, "
         "is_null_aware: boolean, `condition`: string>>",
         "the same joins: what `stages.operators` calls them, which is the generated code that "
         "they are in; `LeftAnti` and the like; whether it is a `NOT IN` that compares all pairs "
         "of rows; and the condition of one without keys; null in tables of before version 5"),
        ("decisions", "bigint", "decisions of aqepilot's in it"),
        ("dropped_events", "bigint", "events that Spark's queues dropped while it ran: above 0, "
         "figures may lack something; null of queries without a decision"),
        ("job", "string", "the job that ran it, the same name on each day; null of queries without "
         "a decision"),
        ("run", "string", "the run of the job, the same when its scheduler tried it again; null of "
         "queries without a decision"),
        ("attempt", "int", "how many times the run had been started, that time included; null when "
         "nothing says so"),
        ("experiment", "string", "the experiment that it is of; null of queries outside one"),
        ("unit", "string", "the unit that it is of, as `experiments` has it"),
        ("arm", "string", "the arm that the unit was assigned"),
    ),
)  # fmt: skip

DECISIONS = _columns(
    _OF_LOG, tuple((c.name, c.type, c.meaning) for c in catalog.decision_columns())
)

POLICIES = _columns(
    _OF_LOG,
    (
        ("time", "timestamp", "when it was read first"),
        ("session_id", "string", "the Spark session"),
        ("policy", "string", "its name"),
        ("point", "string", "the decision point"),
        ("revision", "string", "what decisions carry"),
        ("text", "string", "its text"),
        ("when", "string", "the text of its `when`; null when it has none"),
        ("mode", "string", "`off`, `shadow` or `enforce`"),
        ("source", "string", "`submitted` or `session`"),
        ("error", "string", "what is wrong with the text; null when it is good"),
    ),
)

EXPERIMENTS = _columns(
    _OF_LOG,
    (
        ("time", "timestamp", "when it happened"),
        ("experiment", "string", "its name"),
        ("unit_kind", "string", "`job_run`, `query_run` or `session`"),
        ("unit", "string", "what the draw was for: `job|run`, `job|run|fingerprint`, or the "
         "session's id"),
        ("arm", "string", "what it was assigned"),
        ("arms", "string", "all arms with their weights in percent, the control first"),
        ("metric", "string", "what decides, as was submitted"),
        ("what", "string", "`assigned`, `exposed` or `stopped`"),
        ("detail", "string", "what each arm says, or why it was stopped"),
        ("execution_id", "bigint", "the query in which the arms differed first; null else"),
        ("job", "string", "the job that runs, the same name on each day"),
        ("run", "string", "the run of the job, the same when its scheduler tries it again"),
        ("attempt", "int", "how many times the run had been started, that time included; null when "
         "nothing says so"),
    ),
)  # fmt: skip

SUB_PLANS = _columns(
    _OF_LOG,
    (
        ("time", "timestamp", "when the query ended"),
        ("execution_id", "bigint", "the query, as in Spark's UI"),
        ("fingerprint", "string", "the query's; null where it could not be read"),
        ("job", "string", "the job that ran it, the same name on each day"),
        ("run", "string", "the run of the job, the same when its scheduler tried it again"),
        ("kind", "string", "`PLAN`: the rows of a part of the plan; `SHUFFLE`: a shuffle of it, "
         "and the stage that read that; `QUERY`: the whole query"),
        ("same", "string", "its signature, 16 hexadecimal digits: equal for the same sub-plan on "
         "any day, in any order of inner joins; of a query, the beginning of its fingerprint"),
        ("shape", "string", "its signature without literals"),
        ("input_bytes", "bigint", "size of the files and relations that it reads, as stored"),
        ("row_count", "bigint", "its rows; null of a query, and where no metric counts them"),
        ("bytes", "bigint", "its size in memory, where it was shuffled or broadcast"),
        ("shuffle_bytes", "bigint", "size of the shuffle, compressed; null elsewhere, as are "
         "`partitions` and the sizes of partitions"),
        ("partitions", "int", "partitions that the shuffle was written in"),
        ("max_partition_bytes", "bigint", "size of the largest of them"),
        ("median_partition_bytes", "bigint", "their median size"),
        ("input_rows", "bigint", "rows that went into a partial aggregate; null elsewhere"),
        ("task_ms", "bigint", "run time of the tasks of the stages that read the shuffle, or of "
         "the query, milliseconds"),
        ("read_bytes", "bigint", "what these tasks read from shuffles and from sources"),
        ("read_rows", "bigint", "rows that these tasks read"),
        ("spilled_bytes", "bigint", "what these tasks spilled, as it was on disk"),
        ("peak_memory_bytes", "bigint", "execution memory of a task: the mean of a stage, of the "
         "stage where that is most"),
        ("failures", "int", "attempts of these stages that failed; of a query, 1 where it failed"),
    ),
)  # fmt: skip


FRAMES = {
    "applications": APPLICATIONS,
    "decisions": DECISIONS,
    "experiments": EXPERIMENTS,
    "policies": POLICIES,
    "queries": QUERIES,
    "stages": STAGES,
    "sub_plans": SUB_PLANS,
}


def ddl(columns: tuple[LogColumn, ...]) -> str:
    """Returns columns as a schema in SQL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)
