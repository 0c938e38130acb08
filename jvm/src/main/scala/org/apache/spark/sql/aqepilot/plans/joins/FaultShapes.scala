package org.apache.spark.sql.aqepilot.plans.joins

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.aqepilot.decision.{SparkFault, SparkFaults}
import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, Union}
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftExistence, LeftOuter}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.internal.SQLConf

/** What of a join the table of Spark's faults asks for.
  *
  * @param condition
  *   beside the equality keys
  * @param sides
  *   left and right
  */
final case class JoinShape(
    joinType: JoinType,
    rightKeys: Seq[Expression],
    condition: Option[Expression],
    sides: Seq[LogicalPlan]
)

/** The shapes that the table of Spark's faults names, as predicates on a join. */
object FaultShapes {

  private type Shape = JoinShape => Boolean

  val all: Map[String, Shape] = Map(
    "LEFT_OUTER_WITH_CONDITION" -> (j => j.joinType == LeftOuter && j.condition.isDefined),
    "EXISTENCE_CONDITION_ON_PART_OF_KEY" -> conditionOnPartOfKey,
    "UNION_OF_JOINS" -> (_.sides.exists(_.exists(isUnionOfJoins))),
    "CACHED_RELATION" -> (_ => mayBeCached),
    "STORAGE_PARTITIONED" -> (_.sides.exists(_.exists(isStoragePartitioned)))
  )

  private lazy val ofRelease: Seq[SparkFault] = SparkFaults.in(SPARK_VERSION)

  /** Numbers of the running release's faults that a join could meet. */
  def met(join: => JoinShape): Seq[String] = met(join, ofRelease)

  private[aqepilot] def met(join: => JoinShape, faults: Seq[SparkFault]): Seq[String] =
    if (faults.isEmpty) Nil
    else {
      val shape = join
      faults.filter(f => f.settings.forall(isOn) && all(f.shape)(shape)).map(_.jira)
    }

  /** ShuffledHashJoinExec keeps one row of those with equal keys where the condition reads no other columns of the
    * build side than its keys do. That is right only for those that are a key by themselves.
    */
  private def conditionOnPartOfKey: Shape = join =>
    join.joinType match {
      case LeftExistence(_) =>
        val read = join.condition.fold(AttributeSet.empty)(_.references)
          .intersect(join.sides.last.outputSet)
        val whole = AttributeSet(join.rightKeys.collect { case a: Attribute => a })
        read.nonEmpty && read.subsetOf(AttributeSet(join.rightKeys)) && !read.subsetOf(whole)
      case _ => false
    }

  private def isUnionOfJoins(plan: LogicalPlan): Boolean = plan match {
    case u: Union => u.exists(_.isInstanceOf[Join])
    case _        => false
  }

  /** Whether the query reads cached relations, which are planned by themselves, or is planned where nobody can tell
    * what for.
    */
  private def mayBeCached: Boolean = {
    val query = Sessions.active.flatMap(session =>
      QueryFacts.execution(QueryFacts.executionId(session.sparkContext))
    )
    query.forall(_.withCachedData.collectWithSubqueries { case m: InMemoryRelation => m }.nonEmpty)
  }

  private def isStoragePartitioned(plan: LogicalPlan): Boolean = plan match {
    case scan: DataSourceV2ScanRelation => scan.keyGroupedPartitioning.isDefined
    case _                              => false
  }

  private def isOn(setting: String): Boolean =
    Try(SQLConf.get.getConfString(setting)).toOption.contains("true")
}
