package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.CommonFacts
import org.apache.spark.sql.types.{StructField, StructType}

/** All decision points, each found in the package of its own name: what is common to all refers to none. */
object DecisionPoints {

  // Constants, which need no object of a point.
  final val JoinReorder = "join_reorder"
  final val WriteDistribution = "write_distribution"
  final val JoinSelection = "join_selection"
  final val ShufflePartitions = "shuffle_partitions"
  final val DynamicJoinSelection = "dynamic_join_selection"
  final val SkewJoin = "skew_join"
  final val CostEvaluation = "cost_evaluation"
  final val PartitionCoalescing = "partition_coalescing"

  /** In the order in which Spark comes to them. */
  val names: Seq[String] = Seq(
    JoinReorder,
    WriteDistribution,
    JoinSelection,
    ShufflePartitions,
    DynamicJoinSelection,
    SkewJoin,
    CostEvaluation,
    PartitionCoalescing
  )

  private val loaded: Seq[(String, Either[Throwable, DecisionPoint[_]])] =
    names.map(name => name -> loading(name))

  /** Those whose classes the running Spark can link. */
  val all: Seq[DecisionPoint[_]] = loaded.flatMap(_._2.toOption)

  /** Why the classes of the others cannot be linked, by their names. */
  val faults: Map[String, Throwable] = loaded.collect { case (name, Left(fault)) =>
    name -> fault
  }.toMap

  /** The JVM never initialises a class again that has failed once: it costs that point, and no other. */
  private def loading(name: String): Either[Throwable, DecisionPoint[_]] =
    try Right(load(name))
    catch {
      case e: ExceptionInInitializerError if e.getCause != null => Left(e.getCause)
      case e: Throwable                                         => Left(e)
    }

  private def load(name: String): DecisionPoint[_] = {
    val point = name.split('_').map(_.capitalize).mkString
    Class
      .forName(s"org.apache.spark.sql.aqepilot.points.$name.${point}Point$$")
      .getField("MODULE$")
      .get(null)
      .asInstanceOf[DecisionPoint[_]]
  }

  /** None where there is no point of that name, and where it cannot be linked. */
  def named(name: String): Option[DecisionPoint[_]] = all.find(_.name == name)

  /** The facts that a policy's `when` may use: those known before any point is asked. */
  val whenFacts: StructType = StructType(CommonFacts.fields.take(1))

  /** Path, type and meaning of each fact of a group, e.g. `side.max_bytes`, or of each field of an answer. */
  def leaves(schema: StructType): Seq[(String, StructField)] =
    schema.fields.toSeq.flatMap { field =>
      field.dataType match {
        case group: StructType =>
          group.fields.toSeq.map(fact => (s"${field.name}.${fact.name}", fact))
        case _ => Seq((field.name, field))
      }
    }
}
