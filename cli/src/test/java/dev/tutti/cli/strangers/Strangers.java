package dev.tutti.cli.strangers;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.shared.FreePorts;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * Strangers that send random bytes and hostile frames to the ports of a {@code TcpStore}, of ranks
 * on gloo, of an {@code AeronStore} or of a cluster, beside a job that checks its values. They fail
 * if a value is wrong, a server or the job ends, or their process has more memory than it may.
 *
 * <p>What strangers send depends on the seed alone; when it arrives does not.
 */
final class Strangers implements AutoCloseable {
  private static final int ATTACKS = 200;
  private static final int MOST_SILENT = 100;
  private static final int TIMEOUT_MILLIS = 50;
  private static final int AERON_VERSION = 1;
  private static final int PORTS_OF_MEMBER = 5;
  private static final int MEMBERS = 3;
  private static final int INGRESS = 101;
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  private final Target target;
  private final SplittableRandom random;
  private final HostileBytes bytes;
  private final List<Integer> memberPorts;
  private final Deque<Socket> silent = new ArrayDeque<>();
  private final DatagramSocket sender = new DatagramSocket(0, LOOPBACK);
  private long connections;
  private long refused;
  private long datagrams;

  private Strangers(Target target, long seed, List<Integer> memberPorts) throws IOException {
    this.target = target;
    this.random = new SplittableRandom(seed + target.kind.name().hashCode());
    this.bytes = new HostileBytes(random);
    this.memberPorts = memberPorts;
  }

  /** Decides whether another round begins. */
  interface More {
    boolean test(long round);
  }

  /**
   * Attacks a target, and returns a line on what happened.
   *
   * @param kind the kind of target
   * @param seed the seed of what strangers send
   * @param more the condition of another round
   * @param folder a folder for the target's files and log
   */
  static String run(Target.Kind kind, long seed, More more, Path folder) throws Exception {
    int first = kind == Target.Kind.CLUSTER ? FreePorts.consecutive(MEMBERS * PORTS_OF_MEMBER) : 0;
    List<Integer> ports =
        IntStream.range(0, kind == Target.Kind.CLUSTER ? MEMBERS : 0)
            .mapToObj(i -> first + i * PORTS_OF_MEMBER)
            .toList();
    String members = String.join(",", ports.stream().map(port -> "127.0.0.1:" + port).toList());
    try (Target target = new Target(kind, folder, members);
        Strangers strangers = new Strangers(target, seed, ports)) {
      return strangers.attack(more);
    }
  }

  private String attack(More more) throws Exception {
    Target.Report report = null;
    long rounds = 0;
    for (; more.test(rounds); rounds++) {
      target.order("round");
      switch (target.kind) {
        case TCP -> attackTcp(target.ports("tcp"), this::ofTcpStore);
        case GLOO -> attackRanks();
        case AERON -> attackAeron();
        case CLUSTER -> attackCluster();
      }
      report = target.report();
      assertThat(report.wrong()).as("wrong values of %s in round %d", target, rounds).isZero();
      assertThat(report.mebibytes())
          .as("MiB of %s in round %d", target, rounds)
          .isLessThanOrEqualTo(target.kind.mebibytes);
    }
    target.end();
    return "%s: %d rounds, %d connections and %d refused, %d datagrams; %s"
        .formatted(target, rounds, connections, refused, datagrams, report);
  }

  /** What a stranger does once it has connected. */
  private interface Talk {
    void with(Socket socket, int port) throws IOException;
  }

  private void attackTcp(Set<Integer> ports, Talk talk) throws IOException {
    List<Integer> all = List.copyOf(ports);
    for (int i = 0; i < ATTACKS && !all.isEmpty(); i++) {
      connect(all.get(random.nextInt(all.size())), talk);
    }
  }

  private void connect(int port, Talk talk) throws IOException {
    Socket socket;
    try {
      socket = new Socket(LOOPBACK, port);
      connections++;
    } catch (SocketException e) {
      refused++; // the last rank has connected
      return;
    }
    int end = random.nextInt(4);
    try {
      socket.setSoTimeout(TIMEOUT_MILLIS);
      socket.setSoLinger(end == 0, 0);
      if (random.nextInt(6) == 0) {
        socket.getOutputStream().write(bytes.noise());
      } else {
        talk.with(socket, port);
      }
    } catch (SocketException | SocketTimeoutException e) {
      // It was closed, or does not answer.
    }
    if (end == 1) {
      silent.add(socket);
      if (silent.size() > MOST_SILENT) {
        silent.remove().close();
      }
    } else {
      socket.close();
    }
  }

  private void ofTcpStore(Socket socket, int port) throws IOException {
    socket.getOutputStream().write(bytes.ofTcpStore());
  }

  private void attackRanks() throws IOException {
    Set<Integer> ports = target.ports("tcp");
    while (ports.size() < 3) {
      ports = target.ports("tcp");
      if (!target.isAlive()) {
        throw new IllegalStateException("gloo: the job died");
      }
    }
    Talk talk = (socket, port) -> socket.getOutputStream().write(bytes.ofGloo());
    attackTcp(ports, talk);
    target.order("join");
    attackTcp(ports, talk);
  }

  private void attackAeron() throws IOException {
    attackTcp(target.ports("tcp"), this::ofAeronStore);
    List<Integer> ports = List.copyOf(target.ports("udp"));
    for (int i = 0; i < 10 * ATTACKS && !ports.isEmpty(); i++) {
      int port = ports.get(random.nextInt(ports.size()));
      send(port, random.nextInt(4) == 0 ? bytes.noise() : bytes.aeronFrame());
    }
  }

  private void ofAeronStore(Socket socket, int port) throws IOException {
    OutputStream out = socket.getOutputStream();
    InputStream in = socket.getInputStream();
    out.write(bytes.ofAeronControl(AERON_VERSION));
    if (random.nextInt(4) == 0) {
      out.write(bytes.noise());
      return;
    }
    byte[] head = in.readNBytes(8 + 1 + 1);
    if (head.length < 10 || head[9] != 1) {
      return;
    }
    byte[] streams = in.readNBytes(2 * Integer.BYTES);
    if (streams.length < 8) {
      return;
    }
    out.write(bytes.ofAeronTransport(sender.getLocalPort()));
    announce(port, ByteBuffer.wrap(streams).getInt(), bytes::noise);
    if (random.nextBoolean()) {
      out.write(bytes.noise());
    }
  }

  /** Announces a stream, and sends messages on it. */
  private void announce(int port, int stream, Supplier<byte[]> messages) throws IOException {
    int session = random.nextInt();
    send(port, bytes.setup(session, stream));
    int offset = 0;
    for (int i = random.nextInt(4); i > 0; i--) {
      byte[] message = messages.get();
      if (message.length > 1300) {
        message = Arrays.copyOf(message, 1300);
      }
      byte[] data = bytes.data(session, stream, offset, message);
      send(port, data);
      offset += data.length;
    }
  }

  private void attackCluster() throws IOException {
    for (int i = 0; i < 5 * ATTACKS; i++) {
      int port = memberPorts.get(random.nextInt(memberPorts.size()));
      switch (random.nextInt(4)) {
        case 0 -> send(port, bytes.noise());
        case 1 -> send(port, bytes.aeronFrame());
        default -> announce(port, INGRESS, bytes::clusterMessage);
      }
    }
  }

  private void send(int port, byte[] packet) throws IOException {
    sender.send(new DatagramPacket(packet, packet.length, LOOPBACK, port));
    datagrams++;
  }

  @Override
  public void close() throws IOException {
    sender.close();
    for (Socket each : silent) {
      each.close();
    }
  }
}
