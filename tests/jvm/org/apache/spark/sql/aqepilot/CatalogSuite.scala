package org.apache.spark.sql.aqepilot

import java.nio.file.Paths

import com.fasterxml.jackson.databind.ObjectMapper
import org.scalatest.funsuite.AnyFunSuite

class CatalogSuite extends AnyFunSuite {

  test("the Python package's catalogue is what the sources say: make catalog writes it") {
    val written = new ObjectMapper().readTree(Paths.get("python/aqepilot/catalog.json").toFile)
    val printed = new ObjectMapper().readTree(Catalog.json.toString)
    assert(written == printed)
  }
}
