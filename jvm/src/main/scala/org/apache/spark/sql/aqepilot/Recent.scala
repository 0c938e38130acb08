package org.apache.spark.sql.aqepilot

import java.util.{Collections, LinkedHashMap, Map}

/** What was looked up last, for any number of threads. */
private[aqepilot] object Recent {

  /** A map that keeps its `most` newest entries; one that is read is the newest. */
  def map[K, V](most: Int): Map[K, V] =
    Collections.synchronizedMap(new LinkedHashMap[K, V](16, 0.75f, true) {
      override def removeEldestEntry(e: Map.Entry[K, V]): Boolean = size > most
    })
}
