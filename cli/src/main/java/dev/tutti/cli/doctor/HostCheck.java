package dev.tutti.cli.doctor;

import com.sun.management.OperatingSystemMXBean;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.runtime.launch.JvmThreads;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The check of Java, the machine and the network. */
public final class HostCheck {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  /** The last update of Java 25 in which G1 moves pinned arrays. */
  private static final int LAST_MOVING_UPDATE = 2;

  private HostCheck() {}

  /** Returns the findings. */
  static List<CheckResult> run() {
    List<CheckResult> findings = new ArrayList<>();
    java(findings);
    machine(findings);
    network(findings);
    return findings;
  }

  /** Returns the name of this host, or "localhost" if it has none. */
  public static String hostName() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      return "localhost";
    }
  }

  private static void java(List<CheckResult> findings) {
    String origin = System.getProperty("java.vendor") + ", " + System.getProperty("java.home");
    findings.add(version(Runtime.version(), usesG1(), origin));
    List<String> flags = ManagementFactory.getRuntimeMXBean().getInputArguments();
    findings.add(
        CheckResult.ok("java", "flags", flags.isEmpty() ? "none" : String.join(" ", flags), ""));
    int cores = Runtime.getRuntime().availableProcessors();
    findings.add(
        CheckResult.ok(
            "java",
            "flags of ranks",
            JvmThreads.COLLECTOR + " " + JvmThreads.COMPILER,
            "from "
                + Counts.of(JvmThreads.leastCrowd(cores), "rank")
                + " on this host up; 'tutti run' gives them to java, other launchers need them in"
                + " JDK_JAVA_OPTIONS"));
    boolean allowed = HostCheck.class.getModule().isNativeAccessEnabled();
    findings.add(
        allowed
            ? CheckResult.ok("java", "native access", "allowed", "")
            : CheckResult.note(
                "java",
                "native access",
                "not allowed",
                "Java prints a warning when a backend calls native code; add"
                    + " --enable-native-access=ALL-UNNAMED"));
    findings.add(
        SharedHeap.ofProcess().isPresent()
            ? CheckResult.ok(
                "java", "large tensors", "in memory that other ranks of the host can read", "")
            : CheckResult.note(
                "java",
                "large tensors",
                "in memory that only their process can read",
                "ranks of a host copy them through other memory; direct reads need Linux, native"
                    + " access and "
                    + SharedHeap.SETTING.name()));
  }

  /** Rates a Java version. */
  static CheckResult version(Runtime.Version version, boolean g1, String origin) {
    boolean affected =
        version.feature() == 25 && version.interim() == 0 && version.update() <= LAST_MOVING_UPDATE;
    return affected && g1
        ? CheckResult.note(
            "java",
            "version",
            version.toString(),
            "G1 moves arrays that native code of libraries has pinned (JDK-8377811), which corrupts"
                + " data; use 25.0.3 or later, or another collector, such as -XX:+UseParallelGC. "
                + origin)
        : CheckResult.ok("java", "version", version.toString(), origin);
  }

  private static boolean usesG1() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .anyMatch(collector -> collector.getName().startsWith("G1"));
  }

  private static void machine(List<CheckResult> findings) {
    findings.add(
        CheckResult.ok(
            "machine",
            "system",
            System.getProperty("os.name") + " " + System.getProperty("os.version"),
            System.getProperty("os.arch")));
    findings.add(
        CheckResult.ok(
            "machine",
            "cores",
            Integer.toString(Runtime.getRuntime().availableProcessors()),
            "available to this process"));
    if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system) {
      findings.add(
          CheckResult.ok(
              "machine",
              "memory",
              size(system.getTotalMemorySize()),
              size(system.getFreeMemorySize()) + " free"));
    }
    try {
      FileStore store = Files.getFileStore(SHARED_MEMORY);
      findings.add(
          CheckResult.ok(
              "machine",
              SHARED_MEMORY.toString(),
              size(store.getUsableSpace()) + " free",
              "of " + size(store.getTotalSpace())));
    } catch (IOException e) {
      findings.add(
          CheckResult.note(
              "machine", SHARED_MEMORY.toString(), "none", "cannot be read: " + Reasons.of(e)));
    }
  }

  private static void network(List<CheckResult> findings) {
    try {
      for (NetworkInterface each : Collections.list(NetworkInterface.getNetworkInterfaces())) {
        String state;
        try {
          state =
              (each.isUp() ? "up" : "down")
                  + (each.isLoopback() ? ", loopback: reachable only from this host" : "");
        } catch (SocketException e) {
          state = "gone: " + e.getMessage();
        }
        String addresses =
            each.inetAddresses().map(InetAddress::getHostAddress).collect(Collectors.joining(" "));
        findings.add(
            CheckResult.ok(
                "network", each.getName(), addresses.isEmpty() ? "no address" : addresses, state));
      }
    } catch (SocketException e) {
      findings.add(
          CheckResult.broken(
              "network", "interfaces", "unknown", "cannot be listed: " + Reasons.of(e)));
    }
    try {
      InetAddress host = InetAddress.getLocalHost();
      findings.add(
          host.isLoopbackAddress()
              ? CheckResult.note(
                  "network",
                  "host name",
                  host.getHostName(),
                  host.getHostAddress() + ", a loopback address: reachable only from this host")
              : CheckResult.ok("network", "host name", host.getHostName(), host.getHostAddress()));
    } catch (UnknownHostException e) {
      findings.add(
          CheckResult.note(
              "network",
              "host name",
              "does not resolve",
              reason(e) + "; add it to /etc/hosts, or name an interface"));
    }
  }

  /** Returns why a name does not resolve; the JDK prepends a text of its own to the reason. */
  static String reason(UnknownHostException e) {
    Throwable cause = e.getCause() == null ? e : e.getCause();
    return String.valueOf(cause.getMessage());
  }

  private static String size(long bytes) {
    double value = bytes;
    String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (value >= 1024 && unit < units.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  }
}
