package org.apache.spark.sql.aqepilot.reasons

/** Why a decision took effect or not: a stable code and, in the record, its detail.
  *
  * Codes are added, never renamed: teams read months of logs.
  */
final case class Reason(code: String, meaning: String)

object Reason {
  val Applied: Reason = Reason("APPLIED", "the policy's answer was put into the plan")
  val Shadow: Reason =
    Reason("SHADOW", "the policy is in shadow mode: asked and recorded, the plan is Spark's")
  val NullAnswer: Reason =
    Reason("NULL_ANSWER", "no policy had an answer: Spark's own rule decides")
  val UserHint: Reason = Reason("USER_HINT", "the query's author gave a join hint, which wins")
  val UnknownWord: Reason =
    Reason("UNKNOWN_WORD", "the answer is not a word of this point's vocabulary")
  val NotAdmitted: Reason =
    Reason("NOT_ADMITTED", "the join's type or keys do not admit this answer on this side")
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
    "each task would have rows of any partition, and its writer has a file open in each at once"
  )
  val GuardPartitions: Reason = Reason(
    "GUARD_PARTITIONS",
    "the answer asks for more partitions or tasks than spark.aqepilot.guard.max_partitions allows"
  )
  val WrongLength: Reason =
    Reason("WRONG_LENGTH", "an array in the answer has not one element for each partition")
  val OneMapper: Reason = Reason(
    "ONE_MAPPER",
    "one map task wrote all of each partition to be split, and Spark splits by map task only"
  )
  val ExtraShuffle: Reason = Reason(
    "EXTRA_SHUFFLE",
    "the split takes a further shuffle above the join, and the policy does not say force"
  )
  val NeedsCostEvaluator: Reason = Reason(
    "NEEDS_COST_EVALUATOR",
    "the split takes a further shuffle above the join, which AQE's cost evaluator would refuse"
  )
  val AlreadyBroadcast: Reason =
    Reason("ALREADY_BROADCAST", "the other side is broadcast already, which Spark keeps")
  val OtherSideWon: Reason =
    Reason("OTHER_SIDE_WON", "the other side's answer has priority, in the order of Spark's hints")
  val OtherSideSmaller: Reason = Reason(
    "OTHER_SIDE_SMALLER",
    "both sides have the same answer and Spark builds from the smaller, the other one"
  )
  val RunTimeDecision: Reason = Reason(
    "RUN_TIME_DECISION",
    "a dynamic_join_selection policy has decided on this join from measured sizes, which wins"
  )
  val CrossProduct: Reason = Reason(
    "CROSS_PRODUCT",
    "the order joins relations without a condition where Spark's own order does not"
  )
  val EvaluationFailed: Reason = Reason(
    "EVALUATION_FAILED",
    "the policy's expression failed on these facts (overflow, cast, ...): counts as null"
  )
  val InternalError: Reason =
    Reason("INTERNAL_ERROR", "a fault of ours: the incoming plan was kept as it was")
  val UntrackedJoin: Reason = Reason(
    "UNTRACKED_JOIN",
    "the join came into being while the query ran, so the user's hints on it are not known"
  )
  val Contradiction: Reason =
    Reason("CONTRADICTION", "fields of the answer exclude each other")
  val GuardTargetBytes: Reason =
    Reason("GUARD_TARGET_BYTES", "the target size is smaller than a policy may ask for")
  val SourceSize: Reason = Reason(
    "SOURCE_SIZE",
    "what is written asks for its own partition size, which wins: the data source does, or `write_distribution` did"
  )
  val DistributionBroken: Reason = Reason(
    "DISTRIBUTION_BROKEN",
    "the plan as decided would not be distributed as an operator or the query's author needs it: the " +
      "incoming plan was kept"
  )
  val OtherExtension: Reason = Reason(
    "OTHER_EXTENSION",
    "a rule of another extension has changed what the decision is about, which stays as that rule left it"
  )
  val OutOfRange: Reason = Reason(
    "OUT_OF_RANGE",
    "a number in the answer is zero, negative, NaN or otherwise not one that is allowed there"
  )
  val LocalReadAlreadySplits: Reason = Reason(
    "LOCAL_READ_ALREADY_SPLITS",
    "a broadcast join's streamed side is read where it was written, which splits its partitions anyway"
  )
  val NotComparable: Reason = Reason(
    "NOT_COMPARABLE",
    "the other plan has no cost on the policy's scale: Spark's own costs were compared"
  )
  val OverruledTooOften: Reason = Reason(
    "OVERRULED_TOO_OFTEN",
    "the query adopted too many re-plans that Spark finds dearer: Spark's own costs were compared"
  )
  val ConditionCanThrow: Reason = Reason(
    "CONDITION_CAN_THROW",
    "a condition could throw at run time on rows on which Spark's own plan does not evaluate it: it stays " +
      "where Spark has it, and as Spark evaluates it"
  )
  val SparkFault: Reason = Reason(
    "SPARK_FAULT",
    "the running Spark release has a fault that a plan as decided could meet, and Spark's own plan would not"
  )
  val ReadsMore: Reason = Reason(
    "READS_MORE",
    "as decided, Spark would read rows that its own plan does not read: partitions that a broadcast prunes, rows " +
      "that a runtime filter drops, or relations that it leaves out, as others turned out to be empty"
  )
  val SharedColumns: Reason = Reason(
    "SHARED_COLUMNS",
    "a relation is used twice with the same column ids, which a projection keeps apart: the chain of joins ends " +
      "there"
  )
  val NonDeterministicCte: Reason = Reason(
    "NON_DETERMINISTIC_CTE",
    "a part of the query that gives other rows each time, such as a WITH query with rand(), is read several " +
      "times: Spark runs it once because it plans it alike for each reader, which no decision may change"
  )
  val InvalidRewrite: Reason = Reason(
    "INVALID_REWRITE",
    "the plan as decided failed the check that it returns the same: the incoming plan was kept; this is a fault " +
      "of aqepilot, please report it"
  )
  val UserRepartition: Reason = Reason(
    "USER_REPARTITION",
    "the query's author repartitioned or coalesced what is written, which the write keeps"
  )
  val UserSort: Reason =
    Reason("USER_SORT", "the query's author sorted what is written, which the write keeps")
  val LimitedRows: Reason = Reason(
    "LIMITED_ROWS",
    "the query has a LIMIT or the like, which may pick other rows when a task runs again: they are not shuffled " +
      "further"
  )
  val NotDeterministic: Reason = Reason(
    "NOT_DETERMINISTIC",
    "rows may differ when a task runs again, as those of rand() do: what is shuffled before a write could be " +
      "written twice or not at all, and what a Cartesian product runs again could differ from pair to pair"
  )
  val AdaptiveOff: Reason =
    Reason("ADAPTIVE_OFF", "AQE is off, which would merge and split the partitions of a REBALANCE")
  val StreamingWrite: Reason =
    Reason("STREAMING_WRITE", "a streaming query writes: its distribution is left as it is")
  val BucketedTable: Reason =
    Reason("BUCKETED_TABLE", "the table that is written to has buckets, by which Spark writes")
  val SourceDistribution: Reason = Reason(
    "SOURCE_DISTRIBUTION",
    "the data source that is written to requires a distribution or an order of the rows, which wins; or the write " +
      "has an option that keeps the rows as they are"
  )
  val AmbiguousPartition: Reason = Reason(
    "AMBIGUOUS_PARTITION",
    "a dynamic partition column is of a type of which two values may be equal and have two directories, or share " +
      "one: Spark's writer fails where one task has both, so no more rows are brought to one task"
  )
  val UnsuitableColumn: Reason = Reason(
    "UNSUITABLE_COLUMN",
    "a column to distribute rows by is not written, or is none that rows can be distributed by, or the table is " +
      "partitioned by functions only"
  )
  val BarrierStage: Reason = Reason(
    "BARRIER_STAGE",
    "a stage in barrier mode reads it, and Spark refuses one with more tasks than slots: its tasks stay as Spark " +
      "makes them"
  )
  val RddPartitions: Reason = Reason(
    "RDD_PARTITIONS",
    "the query becomes an RDD, as `df.rdd` or a checkpoint, and code sees its partitions: they stay as Spark makes them"
  )
  val EvaluationDeadline: Reason = Reason(
    "EVALUATION_DEADLINE",
    "the policy's text took longer to evaluate than spark.aqepilot.ask.deadline: counts as null"
  )
  val EvaluationTooLarge: Reason = Reason(
    "EVALUATION_TOO_LARGE",
    "the policy's text made larger values than a driver should hold: counts as null"
  )
  val EvaluationBreakerOpen: Reason = Reason(
    "EVALUATION_BREAKER_OPEN",
    "the policy's text took too long, or too much memory, several times in a row and is not asked for a while"
  )
  val PythonRaised: Reason =
    Reason("PYTHON_RAISED", "the Python function raised an exception: counts as null")
  val PythonWrongAnswer: Reason = Reason(
    "PYTHON_WRONG_ANSWER",
    "what the Python function returned is no decision of this point: counts as null"
  )
  val PythonDeadline: Reason = Reason(
    "PYTHON_DEADLINE",
    "the Python function did not answer within spark.aqepilot.ask.deadline; its process was ended"
  )
  val PythonBusy: Reason = Reason(
    "PYTHON_BUSY",
    "no worker process had the Python function ready within spark.aqepilot.ask.deadline: it was asked something " +
      "else, or was being started"
  )
  val PythonDied: Reason =
    Reason("PYTHON_DIED", "the worker process ended before the Python function had answered")
  val PythonNoWorker: Reason = Reason(
    "PYTHON_NO_WORKER",
    "no worker process with the Python function could be started; it is tried again later"
  )
  val PythonBreakerOpen: Reason = Reason(
    "PYTHON_BREAKER_OPEN",
    "the Python function failed several times in a row and is not asked for a while"
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

/** What became of a proposed decision, read off the query's final plan. */
object Fate {
  val Adopted: Reason =
    Reason("adopted", "the query ran as decided, and Spark alone would have run otherwise")
  val RefusedByCost: Reason =
    Reason(
      "refused_by_cost",
      "the plan was made as decided, and AQE's cost evaluator kept the old one"
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
      "what it is about is not in the plan that ran: AQE replaced it, or took its result from an equal one"
    )

  val all: Seq[Reason] = Seq(Adopted, RefusedByCost, NoChange, Superseded, Gone)
}

/** Something wrong with the set-up that a person should mend; shown by `aqepilot_status()`.
  *
  * @param policy
  *   that it is about, if it is about one
  * @param point
  *   the decision point, likewise
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
    PolicyNotListed -> "a policy has texts but spark.aqepilot.policies does not name it",
    PolicyNameInvalid -> "a policy's name is not a lower-case letter followed by a-z, 0-9 or _",
    PolicyTextInvalid -> "a policy's text does not bind to the facts: it is off at that point",
    PolicyPointUnknown -> "a policy has a text for a decision point that does not exist",
    ModeInvalid -> "a mode is not off, shadow or enforce: it counts as off",
    SettingInvalid -> "a setting's value cannot be read: its default holds",
    SettingUnknown -> "a spark.aqepilot.* setting that does not exist",
    WrongSparkJar -> "the jar was built for another Spark minor: all points are off",
    TwoJars -> "more than one aqepilot jar is on the class path",
    PointOff -> "a decision point that a policy is for is off, because this Spark lacks what it needs",
    GuardLoosened -> "a session asks for a looser guard rail than was submitted: ignored",
    ControlUnreachable -> "the control file cannot be read: its last good copy holds, or what is set for that",
    HistoryUnreadable -> "the pack of past runs cannot be read, is none, or is of another version: the one that was read last holds, else there is no history",
    ExperimentInvalid -> "an experiment's settings do not go together: it does not run, and jobs run as its control",
    RunIgnored -> "a session names its job or run where it may not bring policies: ignored",
    EstimateFailed -> "Spark fails to estimate a plan, as its statistics have NaN for example: its size counts as not known"
  )
}
