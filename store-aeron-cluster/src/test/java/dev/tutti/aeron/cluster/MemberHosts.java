package dev.tutti.aeron.cluster;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The hosts of a cluster's members: network namespaces that a bridge joins with this one, each with
 * a disk in memory. Without the permission to make them, this host with its loopback and its disk.
 */
final class MemberHosts implements AutoCloseable {
  /*
   * Each end has the hardware addresses of the others. To cut the way from one host to another,
   * the first is given a hardware address that nobody has: packets vanish, and no call fails.
   */
  private static final int PORT = 28_600;
  private static final String WIRE = "wire";
  private static final int NOBODY = 0xff;
  private static final int PIECE = 64 * 1024;

  private final Path directory;
  private final int net = ThreadLocalRandom.current().nextInt(1, 255);
  private final boolean separate;
  private final String members;

  /**
   * Makes the hosts.
   *
   * @param directory the folder of their disks
   */
  MemberHosts(Path directory) throws Exception {
    this.directory = directory;
    for (int host = 0; host < TestCluster.SIZE; host++) {
      Files.createDirectory(disk(host));
    }
    separate =
        exec("ip link add " + bridge() + " address " + mac(TestCluster.SIZE) + " type bridge");
    if (separate) {
      members =
          IntStream.range(0, TestCluster.SIZE)
              .mapToObj(host -> address(host) + ":" + PORT)
              .collect(Collectors.joining(","));
      try {
        lay();
        heal();
      } catch (Exception e) {
        close();
        throw e;
      }
    } else {
      System.out.println("no cuts and no full disks: they need root and iproute2");
      members = TestCluster.freeMembers();
    }
  }

  private void lay() throws Exception {
    run("ip address add " + address(TestCluster.SIZE) + "/24 dev " + bridge());
    run("ip link set " + bridge() + " up");
    for (int host = 0; host < TestCluster.SIZE; host++) {
      String port = "tm" + net + "-" + host;
      run("mount -t tmpfs -o size=1g tutti-test " + disk(host));
      run("ip netns add " + name(host));
      run("ip link add %s type veth peer name wire netns %s".formatted(port, name(host)));
      run("ip link set " + port + " master " + bridge() + " up");
      String inside = "ip -n " + name(host);
      run(inside + " link set wire address " + mac(host) + " up");
      run(inside + " link set lo up");
      run(inside + " address add " + address(host) + "/24 dev " + WIRE);
    }
  }

  private String bridge() {
    return "tm" + net;
  }

  private String name(int host) {
    return "tutti-member-%d-%d".formatted(net, host);
  }

  private String address(int host) {
    return "10.214.%d.%d".formatted(net, host + 1);
  }

  private static String mac(int host) {
    return "02:00:00:00:00:%02x".formatted(host);
  }

  /** Returns the host and port of each member. */
  String members() {
    return members;
  }

  /** Returns whether networks can be cut and disks filled. */
  boolean areSeparate() {
    return separate;
  }

  /** Returns the command that runs another on a host. */
  List<String> on(int host) {
    return separate ? List.of("ip", "netns", "exec", name(host)) : List.of();
  }

  /** Returns the folder of a host's disk. */
  Path disk(int host) {
    return directory.resolve("disk" + host);
  }

  /**
   * Lets what a host sends to another vanish.
   *
   * @param from the host that sends; the number of members stands for the clients
   * @param to the host that receives nothing
   */
  void cut(int from, int to) throws Exception {
    lead(from, to, NOBODY);
  }

  private void lead(int from, int to, int mac) throws Exception {
    String ip = from == TestCluster.SIZE ? "ip" : "ip -n " + name(from);
    String device = from == TestCluster.SIZE ? bridge() : WIRE;
    run(
        "%s neigh replace %s lladdr %s dev %s nud permanent"
            .formatted(ip, address(to), mac(mac), device));
  }

  /** Mends all cuts. */
  void heal() throws Exception {
    for (int from = 0; from <= TestCluster.SIZE; from++) {
      for (int to = 0; to <= TestCluster.SIZE; to++) {
        if (from != to) {
          lead(from, to, to);
        }
      }
    }
  }

  /** Takes all free room of a host's disk. */
  void fill(int host) throws IOException {
    byte[] piece = new byte[PIECE];
    try (OutputStream out = Files.newOutputStream(ballast(host))) {
      while (true) {
        out.write(piece);
      }
    } catch (IOException e) {
      if (!String.valueOf(e.getMessage()).contains("No space left")) {
        throw e;
      }
    }
  }

  /** Gives a host's disk room again. */
  void clear(int host) throws IOException {
    Files.delete(ballast(host));
  }

  private Path ballast(int host) {
    return disk(host).resolve("ballast");
  }

  private static void run(String command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command.split(" ", -1)).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(command + ": " + output.strip());
    }
  }

  private static boolean exec(String command) throws InterruptedException {
    try {
      run(command);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Removes the hosts; no process may be on them. */
  @Override
  public void close() throws IOException {
    if (!separate) {
      return;
    }
    try {
      for (int host = 0; host < TestCluster.SIZE; host++) {
        exec("ip netns delete " + name(host));
        exec("umount -l " + disk(host));
      }
      exec("ip link delete " + bridge());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while removing hosts", e);
    }
  }
}
