package org.apache.spark.sql.aqepilot.spark

import java.util.{Collections, LinkedHashMap, Map, Set}

/** What was looked up last, for any number of threads. */
private[aqepilot] object Recent {

  /** A map that keeps its `most` newest entries; one that is read is the newest. */
  def map[K, V](most: Int): Map[K, V] =
    Collections.synchronizedMap(new LinkedHashMap[K, V](16, 0.75f, true) {
      override def removeEldestEntry(e: Map.Entry[K, V]): Boolean = size > most
    })

  /** A set that keeps its `most` newest elements; one that is added again is the newest. */
  def set[K](most: Int): Set[K] = Collections.newSetFromMap(map[K, java.lang.Boolean](most))

  /** The map, whose keys weigh no more than so much altogether. */
  def weighed[K, V](most: Int, mostWeight: Long)(weigh: K => Long): Map[K, V] =
    Collections.synchronizedMap(new LinkedHashMap[K, V](16, 0.75f, true) {
      private var weight = 0L

      override def put(key: K, value: V): V = {
        if (!containsKey(key)) weight += weigh(key)
        val before = super.put(key, value)
        val oldest = entrySet.iterator
        while (size > most || weight > mostWeight) {
          weight -= weigh(oldest.next().getKey)
          oldest.remove()
        }
        before
      }
    })
}
