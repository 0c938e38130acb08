package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Ascending,
  Attribute,
  AttributeReference,
  SortOrder
}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.physical.{
  ClusteredDistribution,
  Distribution,
  HashPartitioning,
  Partitioning
}
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_NUM, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.execution.{
  FilterExec,
  LeafExecNode,
  ProjectExec,
  SortExec,
  SparkPlan,
  UnaryExecNode
}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

/** A source, whose partitions equality says nothing of, as of a scan. */
final class Source(val key: AttributeReference, partitioning: Partitioning) extends LeafExecNode {
  override def output: Seq[Attribute] = Seq(key)
  override def outputPartitioning: Partitioning = partitioning
  override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
  override def equals(other: Any): Boolean = other match {
    case s: Source => s.key == key
    case _         => false
  }
  override def hashCode(): Int = key.hashCode
  override def productArity: Int = 0
  override def productElement(n: Int): Any = throw new IndexOutOfBoundsException
  override def canEqual(other: Any): Boolean = other.isInstanceOf[Source]
}

/** An operator that needs equal keys in one partition. */
final case class Groups(key: Attribute, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def requiredChildDistribution: Seq[Distribution] =
    Seq(ClusteredDistribution(Seq(key)))
  override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    copy(child = newChild)
}

/** Each kind of tampering with what a decision was not about is refused. */
class PhysicalIntegritySuite extends AnyFunSuite {

  private def key = AttributeReference("k", LongType)()

  private def source(by: AttributeReference = key, n: Int = 4) =
    new Source(by, HashPartitioning(Seq(by), n))

  private def shuffle(leaf: Source, n: Int = 4) =
    ShuffleExchangeExec(HashPartitioning(Seq(leaf.key), n), leaf)

  private def sorted(plan: SparkPlan) =
    SortExec(plan.output.map(SortOrder(_, Ascending)), global = false, plan)

  private def join(left: SparkPlan, right: SparkPlan, isSkewJoin: Boolean = false) =
    SortMergeJoinExec(left.output, right.output, Inner, None, left, right, isSkewJoin)

  private val (a, b) = (source(), source())
  private val (left, right) = (shuffle(a), shuffle(b))
  private val beside = join(sorted(left), sorted(right))
  private val shuffles = Rewritten(joins = Seq(beside), addsShuffles = true)

  private def fault(
      after: SparkPlan,
      rewritten: Rewritten = Rewritten(),
      before: SparkPlan = beside
  ) =
    PhysicalIntegrity.fault(before, after, rewritten)

  test("a plan as it came, and one of new nodes that are equal to the old") {
    assert(fault(beside).isEmpty)
    assert(fault(beside.copy(left = sorted(shuffle(a)))).isEmpty)
  }

  test("a leaf that is equal to the one that came, but another: its partitions may differ") {
    val replicated = new Source(a.key, HashPartitioning(Seq(a.key), 12))
    assert(replicated == a)
    assert(fault(beside.copy(left = sorted(shuffle(replicated)))).nonEmpty)
    assert(fault(beside.copy(left = sorted(shuffle(replicated))), shuffles).nonEmpty)
  }

  test("a leaf that is gone, or at another's place") {
    assert(fault(left, shuffles).nonEmpty)
    assert(fault(beside.copy(left = sorted(right), right = sorted(left)), shuffles).nonEmpty)
  }

  test("another number of partitions of a shuffle that was not decided") {
    val after = join(sorted(shuffle(a, 5)), sorted(shuffle(b, 5)))
    assert(fault(after).nonEmpty)
    assert(fault(after, Rewritten(numbered = Seq(left))).nonEmpty)
    assert(fault(after, Rewritten(numbered = Seq(left, right))).isEmpty)
  }

  test("a decided number that the two sides of a join do not share") {
    val after = join(sorted(shuffle(a, 5)), sorted(right))
    assert(fault(after, Rewritten(numbered = Seq(left))).exists(_.contains("lacks a distribution")))
  }

  test("a join beside that is marked as split, or joins by something else") {
    assert(fault(beside.copy(isSkewJoin = true)).nonEmpty)
    assert(fault(beside.copy(isSkewJoin = true), Rewritten(joins = Seq(beside))).isEmpty)
    assert(fault(beside.copy(leftKeys = beside.rightKeys), Rewritten(joins = Seq(beside))).nonEmpty)
  }

  test("a split join whose sides have different numbers of partitions") {
    val after = join(sorted(left), sorted(shuffle(b, 5)), isSkewJoin = true)
    val rewritten = Rewritten(joins = Seq(beside), numbered = Seq(right))
    assert(fault(after, rewritten).exists(_.contains("different numbers")))
  }

  test("a shuffle that comes, where none may, or into the join that was decided") {
    val top = Groups(a.key, beside)
    val above = top.copy(child = ShuffleExchangeExec(HashPartitioning(Seq(a.key), 4), beside))
    assert(fault(above, before = top).nonEmpty)
    assert(fault(above, shuffles, top).isEmpty)
    val in = beside.copy(left = sorted(ShuffleExchangeExec(HashPartitioning(Seq(a.key), 4), left)))
    assert(fault(top.copy(child = in), shuffles, top).nonEmpty)
  }

  test("a shuffle that comes beside: right there one may, further down none") {
    val other = Groups(b.key, sorted(right))
    val top = join(other, beside)
    def over(plan: SparkPlan) = ShuffleExchangeExec(HashPartitioning(Seq(b.key), 4), plan)
    assert(fault(top.copy(left = over(other)), shuffles, top).isEmpty)
    assert(fault(top.copy(left = other.copy(child = over(other.child))), shuffles, top).nonEmpty)
  }

  test("a shuffle that goes: Spark's own above the join, unless somebody needs it; no author's") {
    def over(origin: ShuffleExchangeExec) = Groups(a.key, origin)
    val sparks = over(ShuffleExchangeExec(HashPartitioning(Seq(a.key), 9), beside))
    assert(fault(Groups(a.key, beside), shuffles, sparks).isEmpty)
    assert(fault(Groups(a.key, beside), Rewritten(), sparks).nonEmpty)

    val elsewhere = key
    val needed = Groups(elsewhere, ShuffleExchangeExec(HashPartitioning(Seq(elsewhere), 9), beside))
    assert(fault(Groups(elsewhere, beside), shuffles, needed).exists(_.contains("lacks")))

    val authors = ShuffleExchangeExec(HashPartitioning(Seq(a.key), 9), beside, REPARTITION_BY_NUM)
    authors.setLogicalLink(org.apache.spark.sql.catalyst.plans.logical.LocalRelation(a.key))
    assert(fault(Groups(a.key, beside), shuffles, over(authors)).nonEmpty)
  }

  test("an order that is gone, and one that comes without a decision that may bring it") {
    assert(fault(join(left, right)).nonEmpty)
    assert(fault(join(left, right), shuffles).exists(_.contains("lacks")))
    assert(fault(sorted(beside)).nonEmpty)
    assert(fault(sorted(beside), Rewritten(joins = Seq(beside))).isEmpty)
  }

  test("what the query's author was given of the result's distribution") {
    val mine = ClusteredDistribution(Seq(a.key), requiredNumPartitions = Some(4))
    val rewritten = Rewritten(numbered = Seq(left, right))
    val after = join(sorted(shuffle(a, 5)), sorted(shuffle(b, 5)))
    assert(PhysicalIntegrity.fault(beside, after, rewritten, mine).exists(_.contains("author")))
  }

  test("an operator beside: another condition, another output, one more, one less") {
    val kept = FilterExec(
      org.apache.spark.sql.catalyst.expressions.IsNotNull(a.key),
      beside
    )
    val other = kept.copy(condition = org.apache.spark.sql.catalyst.expressions.IsNull(a.key))
    assert(fault(other, shuffles, kept).nonEmpty)
    assert(fault(beside, shuffles, kept).nonEmpty)
    assert(fault(kept, shuffles).nonEmpty)
    assert(fault(ProjectExec(Seq(a.key), beside), shuffles).nonEmpty)
  }
}
