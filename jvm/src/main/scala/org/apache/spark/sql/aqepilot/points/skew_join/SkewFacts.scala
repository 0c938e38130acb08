package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.{JoinSide, LazyRow, QueryFacts, ShuffleFacts, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.{
  JoinFacts,
  JoinState,
  JoinStrategy,
  SkewLayout,
  StageShuffle
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.internal.SQLConf

/** The facts of `skew_join`, in the order of its schema.
  *
  * @param shuffles
  *   how many the join's stage reads
  * @param isReadLocally
  *   whether Spark will read the only one of them where it was written
  * @param built
  *   what Spark's own rule has made of the join
  */
final class SkewFacts(
    state: JoinState,
    join: BaseJoinExec,
    left: Option[StageShuffle],
    right: Option[StageShuffle],
    shuffles: Int,
    isReadLocally: Boolean,
    built: SkewLayout
) {

  private lazy val logical: Option[Join] = join.logicalLink.collect { case j: Join => j }

  private def joinRow: InternalRow = new GenericInternalRow(
    Array[Any](
      state.id,
      QueryFacts.string(JoinFacts.name(join.joinType)),
      QueryFacts.string(JoinStrategy.of(join).orNull),
      join.leftKeys.length,
      join.condition.isDefined,
      shuffles,
      isReadLocally
    )
  )

  private def sideRow(side: Option[StageShuffle], plan: Option[LogicalPlan]): InternalRow = {
    lazy val sizes = side.map(s => ShuffleFacts.of(s.stats))
    def ofShuffle(value: ShuffleFacts => Any): Any = sizes.map(value).orNull
    LazyRow(
      () => if (side.isEmpty) null else plan.map(p => QueryFacts.strings(Tables.of(p))).orNull,
      () => ofShuffle(_.bytes.length),
      () => side.map(_.stage.shuffle.numMappers).getOrElse(null),
      () => ofShuffle(_.array),
      () => ofShuffle(_.bytes.length <= JoinSide.exactUpTo),
      () => ofShuffle(_.total),
      () => ofShuffle(_.max),
      () => ofShuffle(_.median),
      () => ofShuffle(_.p90.getOrElse(null)),
      () => ofShuffle(_.p99.getOrElse(null)),
      () => ofShuffle(_.nonEmptyRatio.getOrElse(null)),
      () => side.map(_.canSplit).getOrElse(null)
    )
  }

  private def sparkRow: InternalRow = new GenericInternalRow(
    Array[Any](built.left.size, built.right.size, built.tasks.getOrElse(null))
  )

  def row(sc: SparkContext, conf: SQLConf, executionId: Option[Long]): LazyRow = LazyRow(
    () => QueryFacts.query(sc, executionId),
    () => QueryFacts.conf(conf),
    () => QueryFacts.cluster(sc),
    () => joinRow,
    () => sideRow(left, logical.map(_.left)),
    () => sideRow(right, logical.map(_.right)),
    () => sparkRow
  )
}
