import sbt._
import sbt.Keys._

import scala.xml.transform.{RewriteRule, RuleTransformer}
import scala.xml.{Elem, Node, NodeSeq}

/** A row's jar with its sources and its Scaladoc, as Maven wants them: `make maven`.
  *
  * Its pom names no dependency: Spark and the Scala library are there where the jar is used, and a second
  * one would be fetched in vain, or hide the first.
  */
object Published {
  private val home = "https://github.com/aqepilot/aqepilot"

  def settings(base: File): Seq[Setting[_]] = withLicense(base) ++ Seq(
    moduleName := name.value,
    description := "Policies for Spark's adaptive query execution, in SQL or Python",
    organizationName := "The aqepilot authors",
    homepage := Some(url(home)),
    licenses := Seq("Apache-2.0" -> url("https://www.apache.org/licenses/LICENSE-2.0.txt")),
    scmInfo := Some(ScmInfo(url(home), s"scm:git:$home.git")),
    developers := List(Developer("aqepilot", "The aqepilot authors", "", url(home))),
    versionScheme := Some("early-semver"),
    publishMavenStyle := true,
    // From here sbt's own sonaRelease uploads: RELEASE.md
    publishTo := localStaging.value,
    publishConfiguration := publishConfiguration.value.withOverwrite(true),
    Test / publishArtifact := false,
    pomIncludeRepository := (_ => false),
    pomPostProcess := withoutDependencies,
    // A link of Scaladoc's that it cannot tell apart is no fault of the jar.
    Compile / doc / scalacOptions := Seq("-encoding", "utf8", "-no-link-warnings", "-nowarn")
  )

  private def withLicense(base: File): Seq[Setting[_]] =
    Seq(packageBin, packageSrc, packageDoc).map { made =>
      Compile / made / mappings += base / "LICENSE" -> "META-INF/LICENSE"
    }

  private val withoutDependencies: Node => Node = new RuleTransformer(new RewriteRule {
    override def transform(node: Node): NodeSeq = node match {
      case e: Elem if e.label == "dependencies" || e.label == "repositories" => NodeSeq.Empty
      case other                                                             => other
    }
  }).apply(_)
}
