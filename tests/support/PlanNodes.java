import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import scala.collection.Iterator;

/**
 * A physical plan as JSON: a list of nodes, the root first, that name each other by their places in
 * it. `plans.py` reads it; each attribute read over py4j would be a round trip of its own.
 *
 * The running Spark's own Janino compiles it: no generics are looked at, and no lambdas.
 */
public class PlanNodes {
    private int maxFields;
    private boolean initial;
    private final List nodes = new ArrayList();
    private final IdentityHashMap places = new IdentityHashMap();

    /** Of an adaptive plan the initial one, or the one that it has come to. */
    public String read(SparkPlan root, int maxFields, boolean initial)
            throws JsonProcessingException {
        PlanNodes plan = new PlanNodes();
        plan.maxFields = maxFields;
        plan.initial = initial;
        plan.place(root);
        return new ObjectMapper().writeValueAsString(plan.nodes);
    }

    private Object place(Object node) {
        if (!this.places.containsKey(node)) {
            Map told = new LinkedHashMap();
            this.places.put(node, this.nodes.size());
            this.nodes.add(told);
            this.tell((SparkPlan) node, told);
        }
        return this.places.get(node);
    }

    private List placesOf(Iterator plans) {
        List found = new ArrayList();
        while (plans.hasNext()) {
            found.add(this.place(plans.next()));
        }
        return found;
    }

    private void tell(SparkPlan node, Map told) {
        told.put("name", node.getClass().getSimpleName());
        told.put("text", node.simpleString(this.maxFields));
        told.put("subqueries", this.placesOf(node.subqueries().iterator()));
        told.put("children", this.placesOf(node.children().iterator()));
        if (node instanceof AdaptiveSparkPlanExec) {
            AdaptiveSparkPlanExec plan = (AdaptiveSparkPlanExec) node;
            told.put("plan", this.place(this.initial ? plan.initialPlan() : plan.executedPlan()));
        } else if (node instanceof QueryStageExec) {
            told.put("plan", this.place(((QueryStageExec) node).plan()));
        } else if (node instanceof ReusedExchangeExec) {
            told.put("reused", this.place(((ReusedExchangeExec) node).child()));
        } else if (node instanceof ReusedSubqueryExec) {
            told.put("reused", this.place(((ReusedSubqueryExec) node).child()));
        } else if (node instanceof InMemoryTableScanExec) {
            told.put("plan", this.place(((InMemoryTableScanExec) node).relation().cachedPlan()));
        }
        if (node instanceof ShuffleQueryStageExec) {
            told.put("partitions", ((ShuffleQueryStageExec) node).shuffle().numPartitions());
        } else if (node instanceof AQEShuffleReadExec) {
            told.put("specs", ((AQEShuffleReadExec) node).partitionSpecs().mkString("|"));
            told.put("kind", node.stringArgs().mkString(""));
        }
        this.tellJoin(node, told);
        this.tellTable(node, told);
    }

    private void tellJoin(SparkPlan node, Map told) {
        Object type = null;
        Object side = null;
        if (node instanceof SortMergeJoinExec) {
            type = ((SortMergeJoinExec) node).joinType();
        } else if (node instanceof ShuffledHashJoinExec) {
            type = ((ShuffledHashJoinExec) node).joinType();
            side = ((ShuffledHashJoinExec) node).buildSide();
        } else if (node instanceof BroadcastHashJoinExec) {
            type = ((BroadcastHashJoinExec) node).joinType();
            side = ((BroadcastHashJoinExec) node).buildSide();
        } else if (node instanceof BroadcastNestedLoopJoinExec) {
            type = ((BroadcastNestedLoopJoinExec) node).joinType();
            side = ((BroadcastNestedLoopJoinExec) node).buildSide();
        } else if (node instanceof CartesianProductExec) {
            type = "Cross";
        }
        if (type != null) {
            told.put("type", type.toString());
            told.put("build", side == null ? "" : side.toString());
            told.put("title", node.nodeName());
        }
    }

    private void tellTable(SparkPlan node, Map told) {
        if (node instanceof FileSourceScanExec) {
            FileSourceScanExec scan = (FileSourceScanExec) node;
            if (scan.tableIdentifier().isDefined()) {
                told.put("table", ((TableIdentifier) scan.tableIdentifier().get()).table());
            } else {
                Object folder = scan.relation().location().rootPaths().head();
                told.put("path", ((Path) folder).getName());
            }
            if (scan.relation().partitionSchema().fields().length > 0) {
                // Janino finds two methods for its value.
                told.put("read", scan.longMetric("numPartitions").toString());
            }
        } else if (node instanceof BatchScanExec) {
            told.put("table", ((BatchScanExec) node).table().name());
        }
    }
}
