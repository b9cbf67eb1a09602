package dev.tutti.gloo;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.opentest4j.TestAbortedException;

/**
 * Two network namespaces joined by a cable, as if they were two hosts; their traffic stays within
 * them.
 */
final class NetworkNamespaces implements AutoCloseable {
  private static final Pattern NAME = Pattern.compile("tutti-([0-9]+)-[0-9a-f]{8}-[01]");
  private static final int SECONDS = 60;

  private final String prefix;
  private final String unique;
  private final int net;
  private @Nullable LossyLink link;

  private NetworkNamespaces(String unique, int net) {
    this.prefix = "tutti-" + ProcessHandle.current().pid() + "-" + unique;
    this.unique = unique;
    this.net = net;
  }

  /**
   * Creates the namespaces.
   *
   * @throws TestAbortedException if this process lacks permission, or there is no {@code ip}
   */
  static NetworkNamespaces create() throws IOException {
    return create(NetworkNamespaces::cable);
  }

  /**
   * Creates the namespaces with a cable that loses packets.
   *
   * @param loss the share of packets to lose, 0 to 1
   * @param seed seed of the random numbers that choose the lost packets
   * @throws TestAbortedException if this process lacks permission, or there is no {@code ip} or TUN
   *     device
   */
  static NetworkNamespaces createLossy(double loss, long seed) throws IOException {
    return create(made -> made.lossyCable(loss, seed));
  }

  private interface Cable {
    void lay(NetworkNamespaces between) throws IOException;
  }

  private static NetworkNamespaces create(Cable cable) throws IOException {
    int random = ThreadLocalRandom.current().nextInt();
    NetworkNamespaces made =
        new NetworkNamespaces(HexFormat.of().toHexDigits(random), random & 0xffff);
    try {
      removeStale();
      ip("netns", "add", made.name(0));
    } catch (IOException e) {
      throw skipped("needs root and iproute2 to make network namespaces: ", e);
    }
    try {
      ip("netns", "add", made.name(1));
      cable.lay(made);
      made.configure();
      return made;
    } catch (IOException | RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }

  private static TestAbortedException skipped(String why, IOException cause) {
    String reason = why + cause.getMessage();
    System.out.println("skipped: " + reason);
    return new TestAbortedException(reason, cause);
  }

  private void lossyCable(double loss, long seed) throws IOException {
    try {
      link = new LossyLink(interfaceName(0), interfaceName(1), loss, seed);
    } catch (IOException e) {
      throw skipped("needs TUN devices: ", e);
    }
    for (int host = 0; host < 2; host++) {
      ip("link", "set", interfaceName(host), "netns", name(host));
    }
  }

  private void cable() throws IOException {
    ip(
        "-n",
        name(0),
        "link",
        "add",
        interfaceName(0),
        "type",
        "veth",
        "peer",
        "name",
        interfaceName(1),
        "netns",
        name(1));
  }

  private void configure() throws IOException {
    for (int host = 0; host < 2; host++) {
      ip("-n", name(host), "addr", "add", address(host) + "/24", "dev", interfaceName(host));
      ip("-n", name(host), "link", "set", interfaceName(host), "up");
      ip("-n", name(host), "link", "set", "lo", "up");
    }
  }

  /** Removes what a killed test left behind. */
  private static void removeStale() throws IOException {
    for (String line : ip("netns", "list").lines().toList()) {
      Matcher matcher = NAME.matcher(line.split(" ", 2)[0]);
      if (matcher.matches() && ProcessHandle.of(Long.parseLong(matcher.group(1))).isEmpty()) {
        ip("netns", "del", matcher.group());
      }
    }
  }

  /** Returns the name of a namespace, 0 or 1. */
  String name(int host) {
    return prefix + "-" + host;
  }

  /** Returns the address of a namespace's end of the cable. */
  String address(int host) {
    return "10." + (net >> 8) + "." + (net & 0xff) + "." + (host + 1);
  }

  /** Returns the name of a namespace's end of the cable. */
  String interfaceName(int host) {
    return "tt" + unique + host;
  }

  /** Returns the cable of {@link #createLossy}. */
  LossyLink link() {
    return Objects.requireNonNull(link);
  }

  /** Returns a command that runs another one in a namespace. */
  List<String> inside(int host, List<String> command) {
    List<String> all = new ArrayList<>(List.of("ip", "netns", "exec", name(host)));
    all.addAll(command);
    return all;
  }

  private static String ip(String... arguments) throws IOException {
    List<String> command = new ArrayList<>(List.of("ip"));
    command.addAll(List.of(arguments));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    try {
      if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IOException(command + " does not end");
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(command + " was interrupted");
    }
    if (process.exitValue() != 0) {
      throw new IOException(command + ": " + output.strip());
    }
    return output;
  }

  /** Removes the namespaces and the cable; no process may still be in them. */
  @Override
  public void close() throws IOException {
    LossyLink cable = link;
    if (cable != null) {
      cable.close();
    }
    try {
      ip("netns", "del", name(0));
    } finally {
      if (ip("netns", "list").contains(name(1))) {
        ip("netns", "del", name(1));
      }
    }
  }
}
