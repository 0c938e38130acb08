import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.apache.spark.sql.execution.QueryExecution;

/**
 * Wall time, processor time of the calling thread and processor time of the whole driver, all in
 * nanoseconds. The driver's is read a little later: what a query does not wait for, as the record,
 * is done by then.
 *
 * The running Spark's own Janino compiles it.
 */
public class Costs {
    private static final long LATER_MS = 40;

    private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    private final OperatingSystemMXBean driver =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private long wall;
    private long thread;
    private long process;

    /** Of planning a query that is analysed, not run. */
    public long[] ofPlanning(QueryExecution query) throws InterruptedException {
        begin();
        query.executedPlan();
        return end();
    }

    /** Of planning and running a query that is analysed; AQE plans in the calling thread. */
    public long[] ofRunning(Object dataset) throws Exception {
        begin();
        Class.forName("org.apache.spark.sql.Dataset").getMethod("collect", new Class[0])
                .invoke(dataset, new Object[0]);
        return end();
    }

    private void begin() {
        process = driver.getProcessCpuTime();
        thread = threads.getCurrentThreadCpuTime();
        wall = System.nanoTime();
    }

    private long[] end() throws InterruptedException {
        long tookWall = System.nanoTime() - wall;
        long tookThread = threads.getCurrentThreadCpuTime() - thread;
        Thread.sleep(LATER_MS);
        return new long[] {tookWall, tookThread, driver.getProcessCpuTime() - process};
    }
}
