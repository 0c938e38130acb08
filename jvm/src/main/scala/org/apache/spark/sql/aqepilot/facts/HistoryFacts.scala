package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.aqepilot.history.{
  History,
  Kind,
  Past,
  PastRuns,
  Remembered,
  Seen,
  Withheld
}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** What is remembered of a sub-plan, or a query.
  *
  * @param signature
  *   of the very sub-plan, 16 hex digits; of a query the first ones of its fingerprint
  * @param inputBytes
  *   what this run reads
  * @param now
  *   when the query was first asked about, milliseconds since 1970
  */
final class Memories private[facts] (
    val signature: String,
    remembered: Remembered,
    inputBytes: => Option[Long],
    now: Long
) {

  /** None where they are not to be used. */
  val past: Option[PastRuns] = remembered match {
    case Seen(past)  => Some(past)
    case Withheld(_) => None
  }

  /** Why they are not to be used, if so. */
  def held: Option[String] = remembered match {
    case Withheld(held) => Some(held.reason)
    case Seen(_)        => None
  }

  def ageDays: Option[Double] = past.map(p => math.max(0L, now - p.newest) / 86400000.0)

  /** What this run reads, to what those read. */
  def inputRatio: Option[Double] = for {
    before <- past.flatMap(_.inputBytesP50) if before > 0
    here <- inputBytes
  } yield here.toDouble / before
}

/** What past runs measured of the sub-plans of a query, as facts.
  *
  * Where no history is loaded nothing is computed, not even a signature.
  */
object HistoryFacts {

  private val fact = Fact.of[Memories]

  /** Of a sub-plan or a shuffle. */
  val ofPlan: Facts[Memories] = new Facts(
    fact("signature", "names the sub-plan, or the shuffle, on each run: 16 hex digits")(
      _.signature
    ),
    fact(
      "runs",
      "past runs that the other facts are of; null where they are not to be used: see held"
    )(
      _.past.map(_.runs)
    ),
    fact("match", "SAME = runs of the same sub-plan; SHAPE = of sub-plans that differ in literals")(
      _.past.map(p => if (p.isSame) "SAME" else "SHAPE")
    ),
    fact("age_days", "since the newest of them ended, days")(_.ageDays),
    fact("rows_p50", "rows, the median of the runs")(_.past.flatMap(_.rowsP50)),
    fact("rows_max", "rows, the most of all runs")(_.past.flatMap(_.rowsMax)),
    fact(
      "bytes_p50",
      "the rows' size, uncompressed, bytes, the median; null where none was broadcast or shuffled"
    )(
      _.past.flatMap(_.bytesP50)
    ),
    fact("bytes_max", "the same, the most")(_.past.flatMap(_.bytesMax)),
    fact(
      "shuffle_bytes_p50",
      "shuffle bytes (compressed), the median; null where nothing was shuffled"
    )(
      _.past.flatMap(_.shuffleBytesP50)
    ),
    fact("partitions_p50", "partitions that the shuffle had, the median")(
      _.past.flatMap(_.partitionsP50)
    ),
    fact(
      "max_partition_ratio",
      "the largest partition's bytes to the median one's, the median of the runs"
    )(
      _.past.flatMap(_.maxPartitionRatio)
    ),
    fact(
      "input_ratio",
      "bytes of the tables and files that this run reads beneath, to the median of what those runs read; null where " +
        "Spark has not left out partitions yet"
    )(_.inputRatio),
    fact(
      "ms_per_mb",
      "task milliseconds of the stage that read the shuffle, for each MB that it read"
    )(
      _.past.flatMap(_.millisPerMb)
    ),
    fact("us_per_row", "task microseconds of that stage for each row that it read")(
      _.past.flatMap(_.microsPerRow)
    ),
    fact("spilled_ratio", "share of the runs in which that stage spilled, 0 to 1")(
      _.past.flatMap(_.spilledRatio)
    ),
    fact(
      "peak_memory_max",
      "peak execution memory of a task of that stage, bytes, the most of all runs"
    )(
      _.past.flatMap(_.peakMemoryMax)
    ),
    fact(
      "reduction",
      "rows that a partial aggregate gave for each that it got, 0 to 1; null for others"
    )(
      _.past.flatMap(_.reduction)
    ),
    fact("failed_runs", "runs in which a task of that stage failed")(_.past.map(_.failedRuns)),
    fact(
      "held",
      "why the past runs are not to be used, as the pack says; null where they are"
    )(_.held)
  )

  /** Of a query. */
  val ofQuery: Facts[Memories] = new Facts(
    fact("runs", "past runs of the query with this fingerprint")(_.past.map(_.runs)),
    fact("age_days", "since the newest of them ended, days")(_.ageDays),
    fact(
      "task_ms_p50",
      "task milliseconds of those in which no policy decided by history, the median"
    )(
      _.past.flatMap(_.taskMillisP50)
    ),
    fact("failed_runs", "those that failed")(_.past.map(_.failedRuns)),
    fact("decided_runs", "those in which a policy decided by history")(_.past.map(_.decidedRuns)),
    fact("decided_task_ms_p50", "their task milliseconds, the median")(
      _.past.flatMap(_.decidedTaskMillisP50)
    ),
    fact(
      "held",
      "why the past runs are not to be used, as the pack says; null where they are"
    )(_.held)
  )

  /** A struct of facts about past runs of a sub-plan.
    *
    * @param plan
    *   none where there is no such sub-plan
    */
  def plan[A](declared: Fact.Declared[A], name: String = "history", meaning: String = Meaning)(
      plan: A => Option[LogicalPlan]
  ): Fact[A] = declared.optionalGroup(name, meaning, ofPlan)(a => ifAny(of(plan(a), _)))

  /** The same of the inner join of some relations.
    *
    * @param joined
    *   the relations and all conditions that are among them; none where there is no such join
    */
  def join[A](declared: Fact.Declared[A], name: String, meaning: String)(
      joined: A => Option[(Seq[LogicalPlan], Seq[Expression])]
  ): Fact[A] = declared.optionalGroup(name, meaning, ofPlan) { a =>
    ifAny { past =>
      joined(a).flatMap { case (relations, conditions) =>
        Signature.ofSet(relations, conditions).flatMap { signature =>
          memories(past, signature, Kind.Plan, inputBytes(relations))
        }
      }
    }
  }

  /** The same of a group of shuffles: of that which carried most. */
  def shuffles[A](declared: Fact.Declared[A], meaning: String = OfShuffle)(
      shuffles: A => Seq[ShuffleExchangeLike]
  ): Fact[A] = declared.optionalGroup("history", meaning, ofPlan) { a =>
    ifAny { past =>
      val all = shuffles(a).flatMap(of(_, past))
      if (all.isEmpty) None
      else Some(all.maxBy(m =>
        m.past.flatMap(p => p.bytesP50.orElse(p.shuffleBytesP50)).getOrElse(-1L)
      ))
    }
  }

  /** That of the query itself. */
  private[facts] val query: Fact[Query] = Fact.of[Query].optionalGroup(
    "history",
    "past runs of the query with this fingerprint; null where none is known",
    ofQuery
  )(q =>
    ifAny { past =>
      QueryFacts.fingerprint(q.executionId).flatMap { fingerprint =>
        val signature = java.lang.Long.parseUnsignedLong(fingerprint.take(16), 16)
        memories(past, Signature(signature, signature), Kind.Query, None)
      }
    }
  )

  /** Of a sub-plan. */
  val Meaning: String =
    "what past runs measured of the same rows, or of such that differ in literals; null where they were never seen, and " +
      "without a history: see the facts named history"

  private val OfShuffle =
    "what past runs measured of this shuffle, and of the stage that read it; null where it was never seen, and without " +
      "a history: see the facts named history"

  /** Of a group. */
  val OfLargest: String =
    "what past runs measured of the group's shuffles, of that one which carried most, and of the stage that read it; null " +
      "where none was ever seen, and without a history: see the facts named history"

  private val snapshots =
    new PerQuery[Option[Past]](() => History.active.map(_.past).filterNot(_.isEmpty))

  /** What a query sees of history, once for all its decisions. */
  private def ifAny(memories: Past => Option[Memories]): Option[Memories] =
    History.active.flatMap(h => snapshots(QueryFacts.executionId(h.sc))).flatMap(memories)

  private def of(plan: Option[LogicalPlan], past: Past): Option[Memories] = for {
    known <- plan
    signature <- Signature.of(known)
    all <- memories(past, signature, Kind.Plan, inputBytes(Seq(known)))
  } yield all

  private def of(shuffle: ShuffleExchangeLike, past: Past): Option[Memories] = for {
    rows <- PhysicalSubPlan.into(shuffle)
    signature <- PhysicalSubPlan.shuffle(shuffle)
    all <- memories(past, signature, Kind.Shuffle, inputBytes(Seq(rows.logical)))
  } yield all

  private def inputBytes(plans: Seq[LogicalPlan]): Option[Long] = {
    val all = plans.map(plan => if (UnprunedTables.areIn(plan)) None else InputBytes.of(plan))
    if (all.forall(_.isDefined)) Some(all.flatten.sum) else None
  }

  private def memories(
      past: Past,
      signature: Signature,
      kind: String,
      inputBytes: => Option[Long]
  ): Option[Memories] = past
    .find(signature.same, signature.shape, kind)
    .map(new Memories(signature.sameText, _, inputBytes, past.now))
}
