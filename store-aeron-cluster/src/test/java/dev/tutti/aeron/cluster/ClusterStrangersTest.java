package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStore;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.LogLines;
import dev.tutti.aeron.cluster.member.ClusterHello;
import dev.tutti.aeron.cluster.member.ClusterNode;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.Timing;
import dev.tutti.shared.Until;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import io.aeron.Aeron;
import io.aeron.Publication;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import io.aeron.cluster.codecs.SessionConnectRequestEncoder;
import io.aeron.protocol.HeaderFlyweight;
import io.aeron.protocol.SetupFlyweight;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests how many clients a cluster serves, and what strangers can make a member allocate. */
@Timeout(300)
class ClusterStrangersTest {
  private static final Duration LONG = Duration.ofSeconds(100);
  private static final int LONG_TERM = 16 << 20;
  private static final int NAK = HeaderFlyweight.HDR_TYPE_NAK;

  @TempDir private Path directory;
  @TempDir private Path elsewhere;

  private final String member = TestCluster.freeMember();

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("localhost", 0)
        .withDirectory(elsewhere)
        .withToken(JobToken.NONE)
        .withLease(Duration.ofSeconds(3))
        .withTimeout(LONG);
  }

  private AeronClusterServer start(int mostClients) {
    return new AeronClusterServer(
        member,
        0,
        directory.resolve("data"),
        options().withDirectory(directory),
        Long.MAX_VALUE,
        mostClients,
        Time.SYSTEM);
  }

  /** Opens clients, each with a session of its own, since their leases differ. */
  private void open(List<AeronClusterStore> clients, int count) {
    open(clients, count, options());
  }

  private void open(List<AeronClusterStore> clients, int count, AeronStoreOptions options) {
    for (int i = 0; i < count; i++) {
      Duration lease = Duration.ofSeconds(60 + clients.size());
      clients.add(new AeronClusterStore(member, options.withLease(lease)));
    }
  }

  private static void close(List<AeronClusterStore> clients) {
    clients.forEach(AeronClusterStore::close);
  }

  @Test
  void sixtyFourClientsAreServedAtOnce() {
    List<AeronClusterStore> clients = new ArrayList<>();
    Timing timing = Timing.of(Timing.DEFAULT_LEASE);
    try (AeronClusterServer server = start(ClusterNode.MOST_CLIENTS);
        EmbeddedDriver driver = EmbeddedDriver.start(elsewhere, "", timing, 64)) {
      assertThat(server.isRunning()).isTrue();
      open(clients, 64, options().withDriver(driver.path()));
      for (int i = 0; i < clients.size(); i++) {
        assertThat(clients.get(i).add("count", 1)).isEqualTo(i + 1);
      }
      close(clients);
    }
  }

  @Test
  void aClientTooManyIsToldWhyAndTheMemberLogsIt() {
    List<AeronClusterStore> clients = new ArrayList<>();
    try (AeronClusterServer server = start(2);
        LogLines lines = new LogLines(AeronClusterServer.class)) {
      assertThat(server.isRunning()).isTrue();
      open(clients, 2);
      clients.forEach(client -> client.add("count", 1));
      String why = "it serves 2 clients already, the most that a store cluster does";
      assertThatThrownBy(() -> open(clients, 1))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(why);
      assertThat(lines.has("refuses a client: " + why)).isTrue();
      clients.removeLast().close();
      Until.holds(() -> clients.getFirst().check(List.of("count")) && reopens(clients));
      close(clients);
    }
  }

  /** Holds all sessions by requests from one sender, which never proves the token. */
  @Test
  void theLimitOfSessionsNamesItselfAtTheClientAndInTheMembersLog() {
    AeronStoreOptions options = options().withToken(JobToken.of("the token of this job"));
    Timing timing = Timing.of(Timing.DEFAULT_LEASE);
    try (AeronClusterServer server =
            new AeronClusterServer(
                member, 0, directory.resolve("data"), options.withDirectory(directory));
        EmbeddedDriver driver = EmbeddedDriver.start(elsewhere, "", timing, 4);
        Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
        LogLines lines = new LogLines(AeronClusterServer.class);
        Publication requests =
            aeron.addPublication(
                "aeron:udp?term-length=64k|endpoint=" + member,
                AeronCluster.Configuration.ingressStreamId())) {
      Until.holds(server::isLeader);
      for (int i = 0; i <= 640; i++) {
        ExpandableArrayBuffer request = new ExpandableArrayBuffer();
        int length = request(request, i, options.token());
        Until.holds(() -> requests.offer(request, 0, length) > 0);
      }
      Until.holds(() -> lines.has("refused 1 sessions: it has as many as it allows (640)"));
      assertThatThrownBy(
              () -> new AeronClusterStore(member, options.withTimeout(Duration.ofSeconds(5))))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("it has as many sessions as it allows (640)");
      assertThat(server.isRunning()).isTrue();
    }
  }

  /** Writes a request for a session, and returns its length. */
  private static int request(ExpandableArrayBuffer buffer, int number, JobToken token) {
    byte[] credentials =
        new ClusterHello("cluster", ClusterHello.Labels.STORE, token, number).encodedCredentials();
    SessionConnectRequestEncoder request =
        new SessionConnectRequestEncoder()
            .wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder())
            .correlationId(number)
            .responseStreamId(2)
            .version(AeronCluster.Configuration.PROTOCOL_SEMANTIC_VERSION)
            .responseChannel("aeron:udp?endpoint=127.0.0.1:9")
            .putEncodedCredentials(credentials, 0, credentials.length)
            .clientInfo("");
    return MessageHeaderEncoder.ENCODED_LENGTH + request.encodedLength();
  }

  /** Returns whether there is room again; a client that left is gone once its end is in the log. */
  private boolean reopens(List<AeronClusterStore> clients) {
    try {
      open(clients, 1);
      return true;
    } catch (StoreException e) {
      assertThat(e).hasMessageContaining("it serves 2 clients already");
      return false;
    }
  }

  /** Returns the sizes of the files that a driver has for streams. */
  private long longestStream() {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(path -> path.toString().endsWith(".logbuffer"))
          .mapToLong(
              path -> {
                try {
                  return Files.size(path);
                } catch (IOException e) {
                  return 0;
                }
              })
          .max()
          .orElse(0);
    } catch (IOException | UncheckedIOException e) {
      return 0; // one was deleted in the meantime
    }
  }

  /** Sends requests for sessions and answers to challenges that announce 2 GiB. */
  @Test
  void aMessageThatAnnouncesMoreThanItHasIsIgnored() throws Exception {
    try (AeronClusterServer server = start(2);
        LogLines lines = new LogLines(AeronStore.class);
        DatagramSocket socket = new DatagramSocket()) {
      Until.holds(server::isLeader);
      for (int template : new int[] {3, 8}) {
        byte[] setup = setup(template, 65_536);
        byte[] message = announcing(template, Integer.MAX_VALUE - 8);
        String ignored = "from /127.0.0.1:%d".formatted(socket.getLocalPort());
        Until.holds(
            () -> {
              send(socket, packet(setup));
              send(socket, packet(message));
              return lines.has("announces more bytes than it has") && lines.has(ignored);
            });
      }
      try (AeronClusterStore client = new AeronClusterStore(member, options())) {
        assertThat(client.add("count", 1)).isEqualTo(1);
      }
      assertThat(server.isRunning()).isTrue();
    }
  }

  /**
   * Sends a request for a session, then one that changes how many bytes it announces, then what
   * comes before both, so that the member reads it last.
   */
  @Test
  void aMessageThatPassedCannotBeChangedByALaterOne() throws Exception {
    int session = 9;
    byte[] request = frame(session, 64, 128, 0xc0);
    ByteBuffer message = ByteBuffer.wrap(request).order(ByteOrder.LITTLE_ENDIAN).position(32);
    message.putShort((short) 16).putShort((short) 3).putShort((short) 111).putShort((short) 12);
    message.putLong(1).putLong(1).putInt(40);
    byte[] changing = frame(session, 128, 64, 0);
    ByteBuffer.wrap(changing).order(ByteOrder.LITTLE_ENDIAN).putInt(36, Integer.MAX_VALUE - 8);
    try (AeronClusterServer server = start(2);
        LogLines lines = new LogLines(AeronStore.class);
        LogLines errors = new LogLines(AeronClusterServer.class);
        DatagramSocket socket = new DatagramSocket()) {
      Until.holds(server::isLeader);
      Until.holds(() -> isRead(socket, session));
      send(socket, packet(request));
      send(socket, packet(changing));
      send(socket, packet(frame(session, 0, 64, 0)));
      send(socket, packet(announcing(3, 1000)));
      Until.holds(() -> lines.has("announces more bytes than it has"));
      try (AeronClusterStore client = new AeronClusterStore(member, options())) {
        assertThat(client.add("count", 1)).isEqualTo(1);
      }
      assertThat(errors.has("agreement: ")).isFalse();
      assertThat(server.isRunning()).isTrue();
    }
  }

  /** Returns a packet of one frame, with room for a message after its header. */
  private static byte[] frame(int session, int offset, int length, int flags) {
    ByteBuffer out = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(length).put((byte) 0).put((byte) flags);
    out.putShort((short) HeaderFlyweight.HDR_TYPE_DATA).putInt(offset).putInt(session);
    return out.putInt(AeronCluster.Configuration.ingressStreamId()).putInt(1).putLong(0).array();
  }

  @Test
  void aPacketThatCameTooEarlyIsAskedForAgain() throws Exception {
    int session = 9;
    int bytes = 1280;
    try (AeronClusterServer server = start(2);
        DatagramSocket socket = new DatagramSocket()) {
      Until.holds(server::isLeader);
      Until.holds(() -> isRead(socket, session));
      byte[] second = frame(session, bytes, bytes, 0);
      Until.holds(() -> answer(socket, second).equals(new Answer(NAK, session, 0, 2 * bytes)));
      for (int i = 0; i < 9; i++) {
        send(socket, packet(frame(session, i * bytes, bytes, 0)));
      }
      byte[] again = frame(session, 0, bytes, 0);
      Until.holds(() -> answer(socket, again).isReadBeyond(bytes));
    }
  }

  /**
   * What a member answers to the sender of a stream.
   *
   * @param offset up to where it has read, or from where bytes are missing
   * @param length how many bytes it can take, or are missing
   */
  private record Answer(int type, int session, int offset, int length) {
    boolean isReadBeyond(int bytes) {
      return type == HeaderFlyweight.HDR_TYPE_SM && offset > bytes;
    }
  }

  /** Sends a packet, and returns the next answer, or one of no type if none comes soon. */
  private Answer answer(DatagramSocket socket, byte[] sent) {
    ByteBuffer in = ByteBuffer.allocate(2048).order(ByteOrder.LITTLE_ENDIAN);
    send(socket, packet(sent));
    try {
      socket.setSoTimeout(100);
      socket.receive(new DatagramPacket(in.array(), 2048));
    } catch (IOException e) {
      return new Answer(-1, 0, 0, 0);
    }
    return new Answer(in.getShort(6), in.getInt(8), in.getInt(20), in.getInt(24));
  }

  /** Announces a stream, and returns whether the member says up to where it has read it. */
  private boolean isRead(DatagramSocket socket, int session) {
    Answer answer = answer(socket, setup(session, 65_536));
    return answer.session == session && answer.isReadBeyond(-1);
  }

  /** Returns a message that announces a number of bytes of credentials. */
  private static byte[] announcing(int template, int count) {
    ByteBuffer out = ByteBuffer.allocate(96).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(92).put((byte) 0).put((byte) 0xc0).putShort((short) HeaderFlyweight.HDR_TYPE_DATA);
    out.putInt(0).putInt(template).putInt(AeronCluster.Configuration.ingressStreamId()).putInt(1);
    out.putLong(0);
    out.putShort((short) 16).putShort((short) template).putShort((short) 111).putShort((short) 12);
    out.putLong(1).putLong(1);
    if (template == 3) {
      out.putInt(0);
    }
    return out.putInt(count).array();
  }

  private byte[] setup(int session, int termLength) {
    return setup(session, termLength, 0);
  }

  private byte[] setup(int session, int termLength, int termOffset) {
    ByteBuffer bytes = ByteBuffer.allocate(SetupFlyweight.HEADER_LENGTH);
    SetupFlyweight setup = new SetupFlyweight(new UnsafeBuffer(bytes));
    setup
        .sessionId(session)
        .streamId(AeronCluster.Configuration.ingressStreamId())
        .initialTermId(1)
        .activeTermId(1)
        .termOffset(termOffset)
        .termLength(termLength)
        .mtuLength(1408)
        .ttl(0)
        .version((short) HeaderFlyweight.CURRENT_VERSION)
        .headerType(HeaderFlyweight.HDR_TYPE_SETUP)
        .frameLength(SetupFlyweight.HEADER_LENGTH);
    return bytes.array();
  }

  /** Returns a packet to the member's first port. */
  private DatagramPacket packet(byte[] bytes) {
    int port = Integer.parseInt(member.substring(member.lastIndexOf(':') + 1));
    return new DatagramPacket(bytes, bytes.length, InetAddress.getLoopbackAddress(), port);
  }

  @Test
  void aStreamWithLongTermsIsIgnored() throws Exception {
    try (AeronClusterServer server = start(2);
        LogLines lines = new LogLines(AeronStore.class);
        DatagramSocket socket = new DatagramSocket()) {
      Until.holds(server::isLeader);
      DatagramPacket packet = packet(setup(7, LONG_TERM));
      String ignored = "its terms have %d bytes, more than the 65536".formatted(LONG_TERM);
      Until.holds(
          () -> {
            send(socket, packet);
            return lines.has(ignored);
          });
      assertThat(longestStream()).isLessThan(LONG_TERM);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {65535, 1, -32, 65568})
  void aStreamThatBeginsWhereNoFrameDoesIsIgnored(int termOffset) throws Exception {
    try (AeronClusterServer server = start(2);
        LogLines lines = new LogLines(AeronStore.class);
        DatagramSocket socket = new DatagramSocket()) {
      Until.holds(server::isLeader);
      DatagramPacket packet = packet(setup(7, 65536, termOffset));
      String ignored = "no frame begins at byte %d of a term".formatted(termOffset);
      Until.holds(
          () -> {
            send(socket, packet);
            return lines.has(ignored);
          });
    }
  }

  private static void send(DatagramSocket socket, DatagramPacket packet) {
    try {
      socket.send(packet);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void aSessionCannotChooseTheTermsOfItsAnswers() {
    Timing timing = Timing.of(Timing.DEFAULT_LEASE);
    try (AeronClusterServer server = start(2);
        EmbeddedDriver driver = EmbeddedDriver.start(elsewhere, "", timing, 4);
        Aeron aeron = EmbeddedDriver.connect(driver.path(), timing)) {
      Until.holds(server::isLeader);
      AeronCluster.Context context =
          new AeronCluster.Context()
              .aeron(aeron)
              .ownsAeronClient(false)
              .ingressChannel("aeron:udp?term-length=64k")
              .ingressEndpoints("0=" + member)
              .egressChannel("aeron:udp?endpoint=127.0.0.1:0|term-length=" + LONG_TERM)
              .messageTimeoutNs(LONG.toNanos())
              .credentialsSupplier(
                  new ClusterHello("cluster", ClusterHello.Labels.STORE, JobToken.NONE, 5));
      try (AeronCluster session = AeronCluster.connect(context)) {
        assertThat(session.leaderMemberId()).isZero();
        assertThat(longestStream()).isPositive().isLessThan(LONG_TERM);
      }
    }
  }
}
