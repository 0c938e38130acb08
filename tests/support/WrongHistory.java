import io.aqepilot.log.AqePilotQueryClosed;
import io.aqepilot.log.AqePilotSubPlan;
import java.util.Random;
import org.apache.spark.SparkFirehoseListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.aqepilot.history.History;
import org.apache.spark.sql.aqepilot.history.MeasuredRun;
import scala.None$;
import scala.Option;
import scala.Some;
import scala.collection.Iterator;

/**
 * Makes the driver's own history wrong by any factor: after each query it adds runs of the query's
 * parts whose figures are random. The same salt gives the same factors.
 *
 * The running Spark's own Janino compiles it: no generics are looked at, and no lambdas.
 */
public class WrongHistory extends SparkFirehoseListener {
    /** As many as the history keeps of a signature: no true run is left. */
    private static final int RUNS = 10;

    private final History history;
    private volatile long salt;
    private volatile long parts;

    public WrongHistory(History history) {
        this.history = history;
    }

    public void setSalt(long salt) {
        this.salt = salt;
    }

    /** How many parts of queries have a wrong history so far. */
    public long getParts() {
        return this.parts;
    }

    public void onEvent(SparkListenerEvent event) {
        if (!(event instanceof AqePilotQueryClosed)) {
            return;
        }
        AqePilotQueryClosed closed = (AqePilotQueryClosed) event;
        Iterator subPlans = closed.subPlans().iterator();
        while (subPlans.hasNext()) {
            this.add((AqePilotSubPlan) subPlans.next(), closed.time());
            this.parts++;
        }
    }

    private void add(AqePilotSubPlan part, long time) {
        long same = Long.parseUnsignedLong(part.same(), 16);
        long shape = Long.parseUnsignedLong(part.shape(), 16);
        Random random = new Random(same ^ this.salt);
        // Policies ask whether the input is alike: most of them believe what they see.
        boolean isAlike = random.nextInt(8) > 0;
        MeasuredRun run = new MeasuredRun(
                time,
                isAlike ? part.inputBytes() : wrong(part.inputBytes(), random),
                wrong(part.rows(), random),
                wrong(part.bytes(), random),
                wrong(part.shuffleBytes(), random),
                wrong(part.partitions(), random),
                wrong(part.maxPartitionBytes(), random),
                wrong(part.medianPartitionBytes(), random),
                wrong(part.inputRows(), random),
                wrong(part.taskMillis(), random),
                wrong(part.readBytes(), random),
                wrong(part.readRows(), random),
                wrong(part.spilledBytes(), random),
                wrong(part.peakMemoryBytes(), random),
                wrong(part.failures(), random),
                random.nextInt(4) == 0);
        for (int i = 0; i < RUNS; i++) {
            this.history.add(same, shape, part.kind(), run);
        }
    }

    private static Option wrong(Option value, Random random) {
        double factor = Math.pow(10, 12 * random.nextDouble() - 6);
        switch (random.nextInt(10)) {
            case 0: return None$.MODULE$;
            case 1: return new Some(Long.valueOf(0));
            case 2: return new Some(Long.valueOf(Long.MAX_VALUE / 4));
            default:
                if (value.isEmpty()) {
                    return new Some(Long.valueOf((long) factor));
                }
                return new Some(Long.valueOf((long) (((Number) value.get()).longValue() * factor)));
        }
    }
}
