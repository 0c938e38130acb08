import java.io.File;
import java.io.FileOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * A ResourceManager and a NodeManager in this JVM, of this machine only. Writes the configuration
 * of its clients into the folder of the first argument; ends with its standard input.
 */
public class Cluster {
  public static void main(String[] words) throws Exception {
    YarnConfiguration conf = new YarnConfiguration();
    conf.set("fs.defaultFS", "file:///");
    // Else it takes the machine's own address, whatever that is.
    conf.setBoolean("yarn.minicluster.fixed.ports", true);
    for (String service :
        new String[] {
          "resourcemanager.address",
          "resourcemanager.scheduler.address",
          "resourcemanager.resource-tracker.address",
          "resourcemanager.admin.address",
          "resourcemanager.webapp.address",
          "nodemanager.address",
          "nodemanager.localizer.address",
          "nodemanager.collector-service.address",
          "nodemanager.webapp.address"
        }) {
      conf.set("yarn." + service, "localhost:0");
    }
    conf.setInt("yarn.nodemanager.resource.memory-mb", 8192);
    conf.setInt("yarn.nodemanager.resource.cpu-vcores", 8);
    conf.setInt("yarn.scheduler.minimum-allocation-mb", 256);
    // The one queue, as the shaded jar lacks Hadoop's capacity-scheduler.xml.
    String queues = "yarn.scheduler.capacity.";
    conf.set(queues + "maximum-am-resource-percent", "1.0");
    conf.set(queues + "root.queues", "default");
    conf.set(queues + "root.default.capacity", "100");
    conf.set(queues + "root.default.state", "RUNNING");
    conf.set(queues + "root.default.acl_submit_applications", "*");
    conf.set(queues + "node-locality-delay", "-1");
    conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    conf.setBoolean("yarn.nodemanager.disk-health-checker.enable", false);
    conf.setInt("yarn.resourcemanager.am.max-attempts", 4);
    conf.set("yarn.nodemanager.env-whitelist", "JAVA_HOME,SPARK_LOCAL_IP");
    conf.set("yarn.application.classpath", "");

    MiniYARNCluster cluster = new MiniYARNCluster("yarn", 1, 1, 1);
    cluster.init(conf);
    cluster.start();
    if (!cluster.waitForNodeManagersToConnect(60000)) {
      throw new IllegalStateException("the NodeManager did not connect");
    }
    Configuration written = new Configuration(false);
    for (java.util.Map.Entry<String, String> entry : cluster.getConfig()) {
      if (entry.getKey().startsWith("yarn.")) {
        written.set(entry.getKey(), entry.getValue());
      }
    }
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", "file:///");
    try (FileOutputStream out = new FileOutputStream(new File(words[0], "yarn-site.xml"))) {
      written.writeXml(out);
    }
    try (FileOutputStream out = new FileOutputStream(new File(words[0], "core-site.xml"))) {
      core.writeXml(out);
    }
    System.out.println("READY");
    while (System.in.read() >= 0) {}
    cluster.stop();
    System.exit(0);
  }
}
