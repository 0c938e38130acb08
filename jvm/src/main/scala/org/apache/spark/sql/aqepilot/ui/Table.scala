package org.apache.spark.sql.aqepilot.ui

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Try
import scala.xml.Node

import org.apache.spark.sql.aqepilot.spark.Servlets
import org.apache.spark.ui.{PagedDataSource, PagedTable, UIUtils}

/** A column of a paged table.
  *
  * @param order
  *   of the rows by this column; none where they cannot be sorted by it
  */
final private[ui] case class Column[T](
    name: String,
    order: Option[Ordering[T]],
    cell: T => Seq[Node]
)

/** Rows in pages, sorted as the reader asks, as Spark's own tables are.
  *
  * What a request says is read as a number or as the name of a column: no other text of it comes into a link.
  *
  * @param tag
  *   of the table, unique on its page
  * @param path
  *   of the page, with `?` and its own parameters, encoded
  */
final private[ui] class Table[T](
    tag: String,
    all: Seq[T],
    columns: Seq[Column[T]],
    isNewestFirst: Boolean,
    path: String,
    request: Servlets.Request
) extends PagedTable[T] {

  private def asked(what: String): Option[String] = Option(request.getParameter(s"$tag.$what"))

  private val sortedBy: Column[T] = asked("sort")
    .flatMap(name => Try(UIUtils.decodeURLParameter(name)).toOption)
    .flatMap(name => columns.find(c => c.name == name && c.order.isDefined))
    .getOrElse(columns.find(_.order.isDefined).getOrElse(columns.head))

  private val isDescending: Boolean =
    asked("desc").flatMap(text => Try(text.toBoolean).toOption)
      .getOrElse(isNewestFirst && sortedBy.name == columns.head.name)

  private val pageSize: Int =
    asked("pageSize").flatMap(text => Try(text.toInt).toOption).filter(Table.Sizes.contains(_))
      .getOrElse(Table.Size)

  private def page: Int = asked("page").flatMap(text => Try(text.toInt).toOption).getOrElse(1)

  /** The page that is asked for; nothing where there are no rows. */
  def nodes: Seq[Node] = if (all.isEmpty) Nil else table(page)

  override def tableId: String = s"$tag-table"

  override def tableCssClass: String = UIUtils.TABLE_CLASS_STRIPED

  override def pageSizeFormField: String = s"$tag.pageSize"

  override def pageNumberFormField: String = s"$tag.page"

  override def dataSource: PagedDataSource[T] = new PagedDataSource[T](pageSize) {
    private val sorted = {
      val ascending = sortedBy.order.fold(all)(order => all.sorted(order))
      if (isDescending) ascending.reverse else ascending
    }
    override def dataSize: Int = sorted.size
    override def sliceData(from: Int, to: Int): Seq[T] = sorted.slice(from, to)
  }

  override def headers: Seq[Node] = headerRow(
    columns.map(c => (c.name, c.order.isDefined, None)),
    isDescending,
    pageSize,
    sortedBy.name,
    path,
    tag,
    tableId
  )

  override def row(shown: T): Seq[Node] =
    <tr>{columns.map(c => <td>{c.cell(shown)}</td>)}</tr>

  private def sortedPath: String =
    s"$path&$tag.sort=${URLEncoder.encode(sortedBy.name, UTF_8.name())}&$tag.desc=$isDescending"

  override def pageLink(page: Int): String =
    s"$sortedPath&$pageNumberFormField=$page&$pageSizeFormField=$pageSize#$tableId"

  override def goButtonFormPath: String = s"$sortedPath#$tableId"
}

private[ui] object Table {
  private val Size = 100
  private val Sizes = 1 to 1000
}
