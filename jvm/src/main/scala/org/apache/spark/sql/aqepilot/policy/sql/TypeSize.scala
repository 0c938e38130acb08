package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedFunction}
import org.apache.spark.sql.catalyst.expressions.{
  CreateNamedStruct,
  Expression,
  LambdaFunction,
  UnresolvedNamedLambdaVariable
}

/** Keeps the types of an expression's parts small enough for Spark to go through them. A struct of a variable twice, in
  * a lambda of such a struct, and so on, has twice as many fields at each level.
  */
private[policy] object TypeSize {
  private val MaxFields = 10000
  private val FactFields = 50.0
  private val makers = Set("struct", "named_struct", "arrays_zip", "map", "map_from_arrays")

  /** @param parsed
    *   of a size and depth that [[ExpressionSize]] admits
    * @throws TextCheck.Refused
    */
  def check(parsed: Expression): Unit = if (fields(parsed, Map.empty) > MaxFields)
    TextCheck.refuse(
      PolicyError.TooComplex,
      s"A value in the expression has more than $MaxFields fields, those of its structs included.",
      parsed.origin
    )

  /** An upper bound of the fields in the types of a part and of those within it. */
  private def fields(e: Expression, variables: Map[String, Double]): Double = e match {
    case v: UnresolvedNamedLambdaVariable =>
      variables.getOrElse(lower(v.nameParts.head), FactFields)
    case a: UnresolvedAttribute => variables.getOrElse(lower(a.nameParts.head), FactFields)
    case s: CreateNamedStruct   => s.children.map(fields(_, variables)).sum
    case f: UnresolvedFunction  =>
      val (lambdas, values) = f.arguments.partition(_.isInstanceOf[LambdaFunction])
      val taken = values.map(fields(_, variables))
      val results = lambdas.collect { case LambdaFunction(body, arguments, _) =>
        val names = arguments.collect { case v: UnresolvedNamedLambdaVariable =>
          lower(v.nameParts.head) -> largest(taken)
        }
        fields(body, variables ++ names)
      }
      if (makers(lower(f.nameParts.last))) taken.sum else largest(taken ++ results)
    case other => largest(other.children.map(fields(_, variables)))
  }

  private def largest(sizes: Seq[Double]) = sizes.foldLeft(1.0)(math.max)

  private def lower(name: String) = name.toLowerCase(Locale.ROOT)
}
