import com.sun.management.OperatingSystemMXBean;
import org.apache.spark.sql.aqepilot.settings.LoggedFacts$;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.EventLoggingListener;
import org.apache.spark.scheduler.SparkListenerInterface;
import org.apache.spark.sql.aqepilot.record.DecisionLog;

/**
 * Switches what aqepilot writes into the event log while an application runs, which no setting does,
 * and writes more logs of the same events.
 *
 * The running Spark's own Janino compiles it.
 */
public class EventLogs {
    private static final String OURS = "io.aqepilot.";

    private final OperatingSystemMXBean driver =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private final List others = new ArrayList();
    private SparkContext sc;
    private Between own;
    private Field facts;
    private Object recorder;
    private Field learns;

    /** From now on the application's own log gets its events by way of this. */
    public void begin(SparkContext context) throws Exception {
        sc = context;
        EventLoggingListener log = (EventLoggingListener) sc.eventLogger().get();
        own = new Between(log);
        sc.listenerBus().addToEventLogQueue(own.listener());
        sc.listenerBus().removeListener(log);
        facts = DecisionLog.class.getDeclaredField("logged");
        facts.setAccessible(true);
        Field recording = DecisionLog.class.getDeclaredField("recorder");
        recording.setAccessible(true);
        recorder = recording.get(DecisionLog.get(sc));
        learns = recorder.getClass().getDeclaredField("learns");
        learns.setAccessible(true);
    }

    /**
     * What is logged of the next query: a value of spark.aqepilot.log.facts, all but what history
     * learns from, or no event at all.
     */
    public void log(String what) throws Exception {
        boolean hasHistory = !what.equals("no history");
        own.hasOurs = !what.equals("no events");
        learns.set(recorder, hasHistory);
        facts.set(DecisionLog.get(sc), LoggedFacts$.MODULE$.of(hasHistory ? what : "full"));
    }

    /** Waits until all that has happened is written. */
    public void finish() throws Exception {
        DecisionLog.get(sc).counters();
        // The second time for what the first one has brought about.
        sc.listenerBus().waitUntilEmpty();
        sc.listenerBus().waitUntilEmpty();
    }

    /** Of the whole driver. */
    public long processorNanos() {
        return driver.getProcessCpuTime();
    }

    /** Writes one more log, compressed as Spark does it, with aqepilot's events or without. */
    public void another(SparkContext context, String folder, boolean hasOurs) throws Exception {
        sc = context;
        SparkConf conf = sc.conf().clone().set("spark.eventLog.compress", "true");
        EventLoggingListener log = new EventLoggingListener(
                sc.applicationId(), scala.Option.apply(null), new URI(folder), conf);
        log.start();
        Between between = new Between(log);
        between.hasOurs = hasOurs;
        sc.listenerBus().addToEventLogQueue(between.listener());
        others.add(log);
    }

    /** Ends what `another` began, when Spark has stopped. */
    public void stop() {
        for (int i = 0; i < others.size(); i++) {
            ((EventLoggingListener) others.get(i)).stop();
        }
    }

    /** Passes events on to a log. */
    public static class Between implements InvocationHandler {
        private final Object log;
        volatile boolean hasOurs = true;

        Between(Object log) {
            this.log = log;
        }

        SparkListenerInterface listener() {
            return (SparkListenerInterface) Proxy.newProxyInstance(
                    SparkListenerInterface.class.getClassLoader(),
                    new Class[] {SparkListenerInterface.class},
                    this);
        }

        public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
            boolean isOurs = method.getName().equals("onOtherEvent")
                    && given[0].getClass().getName().startsWith(OURS);
            return isOurs && !hasOurs ? null : method.invoke(log, given);
        }
    }
}
