package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.opentest4j.TestAbortedException;

/**
 * Hosts {@code node0}, {@code node1} and so on, each a network namespace, attached to a bridge in a
 * namespace of its own. Programs on a host have their own {@code /dev/shm}, host name and process
 * ids.
 */
final class NamespaceHosts implements AutoCloseable {
  /** The network interface of each host. */
  static final String INTERFACE = "eth0";

  private static final Pattern NAME = Pattern.compile("tutti-run-([0-9]+)-[0-9a-f]{8}-\\w+");

  /** Makes a process see this host; takes the list of names, the host's name, and the command. */
  private static final String ENTER =
      "mount --bind \"$1\" /etc/hosts && hostname \"$2\" && mount -t tmpfs tmpfs /dev/shm"
          + " && shift 2 && exec \"$@\"";

  private final String prefix =
      "tutti-run-%d-%s-"
          .formatted(
              ProcessHandle.current().pid(),
              HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt()));
  private final String bridge = prefix + "bridge";
  private final List<String> namespaces = new ArrayList<>();
  private final Path names;
  private final int count;

  private NamespaceHosts(int count, Path folder) throws IOException {
    this.count = count;
    this.names = folder.resolve("hosts");
    Files.writeString(
        names,
        IntStream.range(0, count)
            .mapToObj(host -> "%s %s%n".formatted(address(host), name(host)))
            .collect(Collectors.joining("", "127.0.0.1 localhost\n", "")));
  }

  /**
   * Creates the hosts.
   *
   * @param folder the folder to which the list of their names is written
   * @throws TestAbortedException if this process lacks the permission, or a tool is missing
   */
  static NamespaceHosts create(int count, Path folder) throws IOException {
    NamespaceHosts made = new NamespaceHosts(count, folder);
    try {
      removeStale();
      made.lay();
      run(made.inside(0, "true"));
      return made;
    } catch (IOException e) {
      made.close();
      String reason = "needs root, iproute2 and unshare to make hosts: " + e.getMessage();
      System.out.println("skipped: " + reason);
      throw new TestAbortedException(reason, e);
    }
  }

  private void lay() throws IOException {
    add(bridge);
    ip("-n", bridge, "link", "add", "bridge", "type", "bridge");
    ip("-n", bridge, "link", "set", "bridge", "up");
    for (int host = 0; host < count; host++) {
      String name = prefix + host;
      String port = "port" + host;
      add(name);
      ip("-n", bridge, "link", "add", port, "type", "veth", "peer", INTERFACE, "netns", name);
      ip("-n", bridge, "link", "set", port, "master", "bridge", "up");
      ip("-n", name, "address", "add", address(host) + "/24", "dev", INTERFACE);
      ip("-n", name, "link", "set", INTERFACE, "up");
      ip("-n", name, "link", "set", "lo", "up");
    }
  }

  private void add(String namespace) throws IOException {
    ip("netns", "add", namespace);
    namespaces.add(namespace);
  }

  /** Removes what a killed test left behind. */
  private static void removeStale() throws IOException {
    for (String line : ip("netns", "list").lines().toList()) {
      Matcher matcher = NAME.matcher(line.split(" ", 2)[0]);
      if (matcher.matches() && ProcessHandle.of(Long.parseLong(matcher.group(1))).isEmpty()) {
        ip("netns", "delete", matcher.group());
      }
    }
  }

  /** Returns how many hosts there are. */
  int count() {
    return count;
  }

  /** Returns the name of a host on all hosts. */
  String name(int host) {
    return "node" + host;
  }

  private static String address(int host) {
    return "10.0.0." + (host + 1);
  }

  /** Returns the prefix that runs a command on a host, and ends all its processes when killed. */
  List<String> inside(int host, String... command) {
    List<String> all = new ArrayList<>(List.of("ip", "netns", "exec", prefix + host));
    all.addAll(List.of("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork"));
    all.addAll(List.of("--kill-child", "--mount-proc", "sh", "-c", ENTER, "sh"));
    all.addAll(List.of(names.toString(), name(host)));
    all.addAll(List.of(command));
    return all;
  }

  /** Lets all packets between two hosts vanish, as a switch does that lost its table. */
  void cut(int host, int other) throws IOException {
    sendToNobody(host, other);
    sendToNobody(other, host);
  }

  private void sendToNobody(int from, int to) throws IOException {
    List<String> command = new ArrayList<>(List.of("-n", prefix + from, "neigh", "replace"));
    command.addAll(List.of(address(to), "lladdr", "02:00:00:00:00:ff"));
    command.addAll(List.of("dev", INTERFACE, "nud", "permanent"));
    ip(command.toArray(String[]::new));
  }

  /** Disconnects a host from all others, or connects it again. */
  void setLink(int host, boolean isUp) throws IOException {
    ip("-n", prefix + host, "link", "set", INTERFACE, isUp ? "up" : "down");
  }

  private static String ip(String... arguments) throws IOException {
    List<String> command = new ArrayList<>(List.of("ip"));
    command.addAll(List.of(arguments));
    return run(command);
  }

  private static String run(List<String> command) throws IOException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      process.getOutputStream().close();
      String output = new String(process.getInputStream().readAllBytes(), UTF_8);
      if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
        throw new IOException(command + ": " + output.strip());
      }
      return output;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(command + " was interrupted");
    } finally {
      process.destroyForcibly();
    }
  }

  /** Removes the hosts; no process may still run on them. */
  @Override
  public void close() throws IOException {
    for (String namespace : namespaces) {
      ip("netns", "delete", namespace);
    }
  }
}
