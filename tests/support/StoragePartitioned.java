import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A data source whose tables are rows in memory, partitioned by their first column, an INT, with
 * several splits for each of its values: what Spark joins without a shuffle, and, where partly
 * clustered, by reading the splits of one side once for each split of the other.
 *
 * The running Spark's own Janino compiles it (`storage_partitioned.py`): no generics, no lambdas.
 */
public class StoragePartitioned implements TableProvider {
    static final Map TABLES = new HashMap();

    /** Makes a table of a DataFrame's rows, at most so many in a split. */
    public void define(String name, Dataset rows, int ofSplit) {
        InternalRow[] all = rows.queryExecution().executedPlan().executeCollect();
        TreeMap byKey = new TreeMap();
        for (int i = 0; i < all.length; i++) {
            Long key = all[i].isNullAt(0) ? Long.MIN_VALUE : (long) all[i].getInt(0);
            if (!byKey.containsKey(key)) byKey.put(key, new ArrayList());
            ((List) byKey.get(key)).add(all[i]);
        }
        List splits = new ArrayList();
        Object[] keys = byKey.keySet().toArray();
        for (int k = 0; k < keys.length; k++) {
            List of = (List) byKey.get(keys[k]);
            Long key = (Long) keys[k];
            for (int from = 0; from < of.size(); from += ofSplit) {
                List part = of.subList(from, Math.min(of.size(), from + ofSplit));
                Integer value = key == Long.MIN_VALUE ? null : (Integer) (int) (long) key;
                splits.add(new Split(value, (InternalRow[]) part.toArray(new InternalRow[0])));
            }
        }
        Object[] made = splits.toArray(new InputPartition[0]);
        TABLES.put(name, new Keyed(name, rows.schema(), (InputPartition[]) made, all.length, keys.length));
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return ((Keyed) TABLES.get(options.get("name"))).schema();
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        return (Table) TABLES.get(properties.get("name"));
    }
}

class Keyed
        implements Table, SupportsRead, ScanBuilder, Scan, Batch, SupportsReportPartitioning,
            SupportsReportStatistics, Statistics {
    private final String name;
    private final StructType schema;
    private final InputPartition[] splits;
    private final long rows;
    private final int keys;

    Keyed(String name, StructType schema, InputPartition[] splits, long rows, int keys) {
        this.name = name;
        this.schema = schema;
        this.splits = splits;
        this.rows = rows;
        this.keys = keys;
    }

    public String name() {
        return name;
    }

    public StructType schema() {
        return schema;
    }

    public StructType readSchema() {
        return schema;
    }

    public Set capabilities() {
        return java.util.Collections.singleton(TableCapability.BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return this;
    }

    public Scan build() {
        return this;
    }

    public String description() {
        return name;
    }

    public Batch toBatch() {
        return this;
    }

    public InputPartition[] planInputPartitions() {
        return splits;
    }

    public PartitionReaderFactory createReaderFactory() {
        return new SplitReaders();
    }

    public Partitioning outputPartitioning() {
        Expression[] by = new Expression[] {Expressions.identity(schema.fieldNames()[0])};
        return new KeyGroupedPartitioning(by, keys);
    }

    public Statistics estimateStatistics() {
        return this;
    }

    public OptionalLong sizeInBytes() {
        return OptionalLong.of(rows * 100 + 1);
    }

    public OptionalLong numRows() {
        return OptionalLong.of(rows);
    }
}

class Split implements InputPartition, HasPartitionKey, Serializable {
    private final Integer key;
    final InternalRow[] rows;

    Split(Integer key, InternalRow[] rows) {
        this.key = key;
        this.rows = rows;
    }

    public InternalRow partitionKey() {
        return new GenericInternalRow(new Object[] {key});
    }
}

class SplitReaders implements PartitionReaderFactory, Serializable {
    public PartitionReader createReader(InputPartition partition) {
        return new SplitReader(((Split) partition).rows);
    }
}

class SplitReader implements PartitionReader {
    private final InternalRow[] rows;
    private int at = -1;

    SplitReader(InternalRow[] rows) {
        this.rows = rows;
    }

    public boolean next() {
        return ++at < rows.length;
    }

    public Object get() {
        return rows[at];
    }

    public void close() {}
}
