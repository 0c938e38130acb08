package org.apache.spark.sql.aqepilot.reasons

/** Why a decision took effect or not: a stable code and, in the record, its detail.
  *
  * Codes are added, never renamed: teams read months of logs.
  */
final case class Reason(code: String, meaning: String)

object Reason {
  val Applied: Reason = Reason("APPLIED", "the policy's answer was put into the plan")
  val Shadow: Reason =
    Reason(
      "SHADOW",
      "the policy is in shadow mode: its answer is recorded, and the plan stays Spark's"
    )
  val NullAnswer: Reason =
    Reason("NULL_ANSWER", "no policy had an answer: Spark's own rule decides")
  val UserHint: Reason = Reason(
    "USER_HINT",
    "the query's author gave a join hint, and hints win"
  )
  val UnknownWord: Reason =
    Reason(
      "UNKNOWN_WORD",
      "the answer is none of the words of this point"
    )
  val NotAdmitted: Reason =
    Reason(
      "NOT_ADMITTED",
      "the join's type or keys do not allow this answer on this side"
    )
  val GuardBroadcastBytes: Reason =
    Reason("GUARD_BROADCAST_BYTES", "the side is larger than the guard lets a policy broadcast")
  val GuardBroadcastRows: Reason =
    Reason("GUARD_BROADCAST_ROWS", "the side has more rows than Spark can broadcast")
  val GuardHashBuildBytes: Reason = Reason(
    "GUARD_HASH_BUILD_BYTES",
    "a partition's hash table would not fit into the memory that the guard allows a task"
  )
  val GuardOpenFiles: Reason = Reason(
    "GUARD_OPEN_FILES",
    "each task could get rows of every partition, and its writer would hold a file open for each"
  )
  val GuardPartitions: Reason = Reason(
    "GUARD_PARTITIONS",
    "the answer asks for more partitions or tasks than spark.aqepilot.guard.max_partitions allows"
  )
  val WrongLength: Reason =
    Reason(
      "WRONG_LENGTH",
      "an array in the answer needs one element for each partition"
    )
  val OneMapper: Reason = Reason(
    "ONE_MAPPER",
    "one map task wrote all of each partition to be split, and Spark splits by map task only"
  )
  val ExtraShuffle: Reason = Reason(
    "EXTRA_SHUFFLE",
    "the split needs a further shuffle above the join, and the answer does not have force"
  )
  val NeedsCostEvaluator: Reason = Reason(
    "NEEDS_COST_EVALUATOR",
    "the split needs a further shuffle above the join, and AQE's cost evaluator would refuse that"
  )
  val AlreadyBroadcast: Reason =
    Reason(
      "ALREADY_BROADCAST",
      "the other side is broadcast already, and Spark keeps that"
    )
  val OtherSideWon: Reason =
    Reason(
      "OTHER_SIDE_WON",
      "the other side's answer wins by the order of Spark's hints"
    )
  val OtherSideSmaller: Reason = Reason(
    "OTHER_SIDE_SMALLER",
    "both sides have the same answer, and Spark builds from the other side, which is smaller"
  )
  val RunTimeDecision: Reason = Reason(
    "RUN_TIME_DECISION",
    "a dynamic_join_selection policy has decided on this join by measured sizes, and that wins"
  )
  val CrossProduct: Reason = Reason(
    "CROSS_PRODUCT",
    "the order joins relations without a condition, and Spark's own order does not"
  )
  val EvaluationFailed: Reason = Reason(
    "EVALUATION_FAILED",
    "the policy's expression failed on these facts (overflow, cast, ...): the answer counts as null"
  )
  val InternalError: Reason =
    Reason(
      "INTERNAL_ERROR",
      "a fault of aqepilot: the plan stays as it came"
    )
  val UntrackedJoin: Reason = Reason(
    "UNTRACKED_JOIN",
    "the join was made while the query ran, so the user's hints on it are not known"
  )
  val Contradiction: Reason =
    Reason(
      "CONTRADICTION",
      "two fields of the answer exclude each other"
    )
  val GuardTargetBytes: Reason =
    Reason("GUARD_TARGET_BYTES", "the target size is smaller than a policy may ask for")
  val SourceSize: Reason = Reason(
    "SOURCE_SIZE",
    "the data source, or a decision of `write_distribution`, has set the partition size of what is " +
      "written, and that wins"
  )
  val DistributionBroken: Reason = Reason(
    "DISTRIBUTION_BROKEN",
    "the decided plan would not be distributed as an operator or the query's author needs it: the " +
      "plan stays as it came"
  )
  val OtherExtension: Reason = Reason(
    "OTHER_EXTENSION",
    "a rule of another extension has changed this part of the plan, and its change stays"
  )
  val EngineFirst: Reason = Reason(
    "ENGINE_FIRST",
    "a native engine has put its operators in the place of Spark's before this point's rule saw them: this part " +
      "stays as the engine has it"
  )
  val OutOfRange: Reason = Reason(
    "OUT_OF_RANGE",
    "a number in the answer is outside its range: zero, negative or NaN, for example"
  )
  val LocalReadAlreadySplits: Reason = Reason(
    "LOCAL_READ_ALREADY_SPLITS",
    "the streamed side of a broadcast join is read where it was written, and that splits its " +
      "partitions already"
  )
  val NotComparable: Reason = Reason(
    "NOT_COMPARABLE",
    "the policy has a cost for one of the two plans only: Spark's own costs were compared"
  )
  val OverruledTooOften: Reason = Reason(
    "OVERRULED_TOO_OFTEN",
    "the query has adopted too many re-plans that cost more by Spark's own measure: Spark's costs " +
      "were compared"
  )
  val ConditionCanThrow: Reason = Reason(
    "CONDITION_CAN_THROW",
    "a condition could throw on rows for which Spark's own plan does not evaluate it: it stays where " +
      "Spark has it"
  )
  val SparkFault: Reason = Reason(
    "SPARK_FAULT",
    "this Spark release has a fault that the decided plan could meet, and Spark's own plan would not"
  )
  val ReadsMore: Reason = Reason(
    "READS_MORE",
    "the decided plan would read rows that Spark's own plan does not: pruned partitions, rows that a " +
      "runtime filter drops, or relations that Spark leaves out"
  )
  val SharedColumns: Reason = Reason(
    "SHARED_COLUMNS",
    "a relation is used twice with the same column ids, and a projection keeps the two apart: the " +
      "chain of joins ends there"
  )
  val NonDeterministicCte: Reason = Reason(
    "NON_DETERMINISTIC_CTE",
    "several readers share a part of the query that gives other rows each time, such as a WITH query " +
      "with rand(): Spark runs it once only while all readers' plans are alike"
  )
  val InvalidRewrite: Reason = Reason(
    "INVALID_REWRITE",
    "the decided plan failed the check that it returns the same rows: the plan stays as it came; " +
      "please report this fault of aqepilot"
  )
  val UserRepartition: Reason = Reason(
    "USER_REPARTITION",
    "the query's author repartitioned or coalesced the rows that are written, and the write keeps " +
      "that"
  )
  val UserSort: Reason =
    Reason(
      "USER_SORT",
      "the query's author sorted the rows that are written, and the write keeps that"
    )
  val LimitedRows: Reason = Reason(
    "LIMITED_ROWS",
    "the query has a LIMIT or the like, which may pick other rows when a task runs again: its rows " +
      "get no further shuffle"
  )
  val NotDeterministic: Reason = Reason(
    "NOT_DETERMINISTIC",
    "rows may differ when a task runs again, as those of rand() do: a shuffle before a write could " +
      "write rows twice or lose them, and a Cartesian product could pair other rows"
  )
  val AdaptiveOff: Reason =
    Reason(
      "ADAPTIVE_OFF",
      "AQE is off, so nothing would merge or split the partitions of a REBALANCE"
    )
  val StreamingWrite: Reason =
    Reason(
      "STREAMING_WRITE",
      "a streaming query writes, and its distribution stays"
    )
  val BucketedTable: Reason =
    Reason(
      "BUCKETED_TABLE",
      "the table has buckets, and Spark writes by these"
    )
  val SourceDistribution: Reason = Reason(
    "SOURCE_DISTRIBUTION",
    "the data source requires a distribution or an order of rows, or an option of the write keeps the " +
      "rows as they are: that wins"
  )
  val AmbiguousPartition: Reason = Reason(
    "AMBIGUOUS_PARTITION",
    "two values of a dynamic partition column may be equal with two directories, or share one " +
      "directory: Spark's writer fails where one task has both"
  )
  val UnsuitableColumn: Reason = Reason(
    "UNSUITABLE_COLUMN",
    "a column of the answer is not written, or rows cannot be distributed by it, or the table is " +
      "partitioned by functions only"
  )
  val BarrierStage: Reason = Reason(
    "BARRIER_STAGE",
    "a stage in barrier mode reads this, and Spark refuses such a stage with more tasks than slots: " +
      "the number of tasks stays Spark's"
  )
  val RddPartitions: Reason = Reason(
    "RDD_PARTITIONS",
    "the query becomes an RDD (`df.rdd`, a checkpoint), and code sees its partitions: their number " +
      "stays Spark's"
  )
  val EvaluationDeadline: Reason = Reason(
    "EVALUATION_DEADLINE",
    "the policy's text took longer than spark.aqepilot.ask.deadline: the answer counts as null"
  )
  val EvaluationTooLarge: Reason = Reason(
    "EVALUATION_TOO_LARGE",
    "the policy's text made larger values than a driver should hold: the answer counts as null"
  )
  val EvaluationBreakerOpen: Reason = Reason(
    "EVALUATION_BREAKER_OPEN",
    "the policy's text took too much time or memory several times in a row: it is not asked for a " +
      "while"
  )
  val PythonRaised: Reason =
    Reason(
      "PYTHON_RAISED",
      "the Python function raised an exception: the answer counts as null"
    )
  val PythonWrongAnswer: Reason = Reason(
    "PYTHON_WRONG_ANSWER",
    "the Python function returned a value that is no decision of this point: the answer counts as " +
      "null"
  )
  val PythonDeadline: Reason = Reason(
    "PYTHON_DEADLINE",
    "the Python function took longer than spark.aqepilot.ask.deadline: its process was ended"
  )
  val PythonBusy: Reason = Reason(
    "PYTHON_BUSY",
    "no worker process had the Python function ready within spark.aqepilot.ask.deadline: each was " +
      "busy or still starting"
  )
  val PythonDied: Reason =
    Reason(
      "PYTHON_DIED",
      "the worker process ended before the Python function answered"
    )
  val PythonNoWorker: Reason = Reason(
    "PYTHON_NO_WORKER",
    "no worker process could be started for the Python function: the next ask tries again later"
  )
  val PythonBreakerOpen: Reason = Reason(
    "PYTHON_BREAKER_OPEN",
    "the Python function failed several times in a row: it is not asked for a while"
  )

  val all: Seq[Reason] = Seq(
    Applied,
    Shadow,
    NullAnswer,
    UserHint,
    UnknownWord,
    NotAdmitted,
    GuardBroadcastBytes,
    GuardBroadcastRows,
    GuardHashBuildBytes,
    GuardOpenFiles,
    GuardPartitions,
    WrongLength,
    OneMapper,
    ExtraShuffle,
    NeedsCostEvaluator,
    AlreadyBroadcast,
    OtherSideWon,
    OtherSideSmaller,
    EvaluationFailed,
    InternalError,
    UntrackedJoin,
    OutOfRange,
    LocalReadAlreadySplits,
    NotComparable,
    OverruledTooOften,
    Contradiction,
    GuardTargetBytes,
    SourceSize,
    DistributionBroken,
    OtherExtension,
    EngineFirst,
    RunTimeDecision,
    CrossProduct,
    ConditionCanThrow,
    SparkFault,
    ReadsMore,
    SharedColumns,
    NonDeterministicCte,
    InvalidRewrite,
    UserRepartition,
    UserSort,
    LimitedRows,
    NotDeterministic,
    AdaptiveOff,
    StreamingWrite,
    BucketedTable,
    SourceDistribution,
    AmbiguousPartition,
    UnsuitableColumn,
    BarrierStage,
    RddPartitions,
    EvaluationDeadline,
    EvaluationTooLarge,
    EvaluationBreakerOpen,
    PythonRaised,
    PythonWrongAnswer,
    PythonDeadline,
    PythonBusy,
    PythonDied,
    PythonNoWorker,
    PythonBreakerOpen
  )
}

/** The outcome of a decision, read off the query's final plan. */
object Fate {
  val Adopted: Reason =
    Reason(
      "adopted",
      "the query ran as decided, and Spark alone would have run it otherwise"
    )
  val RefusedByCost: Reason =
    Reason(
      "refused_by_cost",
      "the decided plan was made, and AQE's cost evaluator kept the old one"
    )
  val NoChange: Reason =
    Reason("no_change", "the query ran as Spark alone would have run it")
  val Superseded: Reason =
    Reason(
      "superseded",
      "a later decision on the same thing replaced it"
    )
  val Gone: Reason =
    Reason(
      "gone",
      "the plan that ran does not have this part: AQE replaced it, or took its result from an equal one"
    )

  val all: Seq[Reason] = Seq(Adopted, RefusedByCost, NoChange, Superseded, Gone)
}

/** A fault of the set-up, for a person to mend. `aqepilot_status()` shows those that do not belong to one query.
  *
  * @param policy
  *   the policy that has it; none where it belongs to no policy
  * @param point
  *   the decision point that has it; none where it belongs to no point
  */
final case class Problem(
    code: String,
    message: String,
    policy: Option[String] = None,
    point: Option[String] = None
)

object Problem {
  val PolicyNotDefined = "POLICY_NOT_DEFINED"
  val PolicyNotListed = "POLICY_NOT_LISTED"
  val PolicyNameInvalid = "POLICY_NAME_INVALID"
  val PolicyTextInvalid = "POLICY_TEXT_INVALID"
  val PolicyPointUnknown = "POLICY_POINT_UNKNOWN"
  val PolicyExpired = "POLICY_EXPIRED"
  val ModeInvalid = "MODE_INVALID"
  val SettingInvalid = "SETTING_INVALID"
  val SettingUnknown = "SETTING_UNKNOWN"
  val WrongSparkJar = "WRONG_SPARK_JAR"
  val TwoJars = "TWO_JARS"
  val PointOff = "POINT_OFF"
  val GuardLoosened = "GUARD_LOOSENED"
  val ControlUnreachable = "CONTROL_UNREACHABLE"
  val HistoryUnreadable = "HISTORY_UNREADABLE"
  val ExperimentInvalid = "EXPERIMENT_INVALID"
  val RunIgnored = "RUN_IGNORED"
  val EstimateFailed = "ESTIMATE_FAILED"

  val meanings: Seq[(String, String)] = Seq(
    PolicyNotDefined -> "spark.aqepilot.policies names a policy that has no text at any point",
    PolicyNotListed -> "a policy has texts, and spark.aqepilot.policies does not name it",
    PolicyNameInvalid -> "a policy's name is not a lower-case letter followed by a-z, 0-9 or _",
    PolicyTextInvalid -> "a policy's text is wrong: the policy is off at that point",
    PolicyPointUnknown -> "a policy has a text for a decision point that does not exist",
    PolicyExpired -> "the day on which a policy expires has come: it is not asked any more",
    ModeInvalid -> "a mode is not off, shadow or enforce: it counts as off",
    SettingInvalid -> "a setting's value cannot be read: its default holds",
    SettingUnknown -> "a spark.aqepilot.* setting is set that does not exist",
    WrongSparkJar -> "the jar was built for another Spark minor: all points are off",
    TwoJars -> "more than one aqepilot jar is on the class path",
    PointOff -> "a policy is for a decision point that is off, because this Spark lacks what the point needs",
    GuardLoosened -> "a session asks for a looser guard rail than was submitted: the submitted one holds",
    ControlUnreachable -> "the control file cannot be read: its last good copy holds, or the mode that is set for that",
    HistoryUnreadable -> "the pack of past runs cannot be read, is none, or is of another version: the one that was read last holds, else there is no history",
    ExperimentInvalid -> "an experiment's settings contradict each other: it does not run, and jobs run as its control",
    RunIgnored -> "a session names its job or run and may not bring policies: the name is ignored",
    EstimateFailed -> "Spark fails to estimate a plan, for example by statistics with NaN: the size counts as not known"
  )
}
