package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.NoOpIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Tests the state machine without a cluster: what it does twice, and what a snapshot keeps. */
class ClusterServiceTest {
  private static final int FRAME = 200;

  private final Map<Long, ClientSession> clients = new TreeMap<>();
  private ClusterService service = new ClusterService();

  private ClientSession client(long id) {
    byte[] principal = ByteBuffer.allocate(Long.BYTES).putLong(100 + id).array();
    ClientSession client =
        (ClientSession)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {ClientSession.class},
                (proxy, method, arguments) ->
                    switch (method.getName()) {
                      case "id" -> id;
                      case "encodedPrincipal" -> principal;
                      default -> throw new UnsupportedOperationException(method.getName());
                    });
    clients.put(id, client);
    service.onSessionOpen(client, 0);
    return client;
  }

  private Cluster cluster() {
    return (Cluster)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Cluster.class},
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "getClientSession" -> clients.get((long) arguments[0]);
                  case "idleStrategy" -> NoOpIdleStrategy.INSTANCE;
                  default -> throw new UnsupportedOperationException(method.getName());
                });
  }

  private static byte[] frame(UnsafeBuffer header, DirectBuffer body, int at, int bytes) {
    byte[] frame = Arrays.copyOf(header.byteArray(), Protocol.HEADER_BYTES + bytes);
    body.getBytes(at, frame, Protocol.HEADER_BYTES, bytes);
    return frame;
  }

  private static List<byte[]> frames(
      int code, long session, long call, Consumer<BodyWriter> request) {
    BodyWriter body = new BodyWriter();
    request.accept(body.clear());
    List<byte[]> frames = new ArrayList<>();
    new FrameWriter(
            (header, part, at, bytes) -> {
              frames.add(frame(header, part, at, bytes));
              return 1;
            },
            FRAME,
            session)
        .write(code, call, body.buffer(), body.length(), 0);
    return frames;
  }

  private void ask(long client, int code, long call, Consumer<BodyWriter> request) {
    frames(code, 100 + client, call, request).forEach(frame -> take(client, frame));
  }

  private void take(long client, byte[] frame) {
    service.onSessionMessage(
        clients.get(client), 0, new UnsafeBuffer(frame), 0, frame.length, null);
  }

  /** Replaces the state machine by one that starts from a snapshot of it. */
  private void restart() {
    List<byte[]> frames = new ArrayList<>();
    boolean[] full = {true};
    new ClusterSnapshot(service)
        .save(
            cluster(),
            new FrameWriter(
                (header, body, at, bytes) -> {
                  full[0] = !full[0];
                  if (full[0]) {
                    return -2;
                  }
                  frames.add(frame(header, body, at, bytes));
                  return 1;
                },
                FRAME,
                0));
    service = new ClusterService();
    FrameReader reader = new ClusterSnapshot(service).reader(cluster());
    frames.forEach(frame -> reader.onFragment(new UnsafeBuffer(frame), 0, frame.length, null));
  }

  private static long call(long number, int slot) {
    return number << ClusterCaller.SLOT_BITS | slot;
  }

  private byte[] answer(long client, int slot) {
    return Objects.requireNonNull(
        Objects.requireNonNull(service.callers.get(client)).slots.get(slot).answer);
  }

  private static Consumer<BodyWriter> adding(long delta) {
    return body -> {
      body.putText("n");
      body.putLong(delta);
    };
  }

  private static Consumer<BodyWriter> popping(String key) {
    return body -> {
      body.putByte(0);
      body.putText(key);
    };
  }

  private static Consumer<BodyWriter> putting(String key, byte[] value) {
    return body -> {
      body.putText(key);
      body.putBytes(value);
    };
  }

  private byte[] value(String key) {
    return Objects.requireNonNull(service.commands().table().get(key));
  }

  @Test
  void whatIsAskedBetweenTheFramesOfARequestDoesNotEndIt() {
    client(1);
    byte[] value = new byte[3 * FRAME];
    Arrays.fill(value, (byte) 7);
    List<byte[]> frames = frames(Protocol.SET, 101, call(1, 0), putting("k", value));
    for (byte[] frame : frames) {
      take(1, frame);
      ask(1, Protocol.CANCEL, ClusterLink.PROBE, body -> {});
    }
    assertThat(value("k")).isEqualTo(value);

    // One that is given up and sent again is whole, too.
    byte[] other = new byte[3 * FRAME];
    List<byte[]> again = frames(Protocol.SET, 101, call(2, 0), putting("k", other));
    take(1, again.get(0));
    take(1, again.get(1));
    again.forEach(frame -> take(1, frame));
    assertThat(value("k")).isEqualTo(other);
  }

  @Test
  void whatIsSentAgainIsDoneOnce() {
    client(1);
    ask(1, Protocol.ADD, call(1, 0), adding(5));
    ask(1, Protocol.ADD, call(1, 0), adding(5));
    restart();
    ask(1, Protocol.ADD, call(1, 0), adding(5));
    assertThat(value("n")).asString().isEqualTo("5");
    ask(1, Protocol.ADD, call(2, 0), adding(5));
    ask(1, Protocol.ADD, call(1, 0), adding(5));
    ask(1, Protocol.ADD, call(3, 1), adding(1));
    assertThat(value("n")).asString().isEqualTo("11");
    assertThat(new BodyReader().wrap(new UnsafeBuffer(answer(1, 1)), 0, 8).readLong())
        .isEqualTo(11);
  }

  @Test
  void aPopThatIsSentAgainTakesOneValue() {
    client(1);
    ask(1, Protocol.POP, call(1, 0), popping("q"));
    ask(1, Protocol.POP, call(1, 0), popping("q"));
    ask(1, Protocol.PUSH, call(2, 1), putting("q", new byte[] {1}));
    ask(1, Protocol.POP, call(1, 0), popping("q"));
    ask(1, Protocol.PUSH, call(3, 1), putting("q", new byte[] {2}));
    assertThat(answer(1, 0)).containsExactly(1, 0, 0, 0, 1);
    assertThat(service.commands().table().length("q")).isEqualTo(1);
  }

  @Test
  void aSlotThatIsGivenToAnotherCallEndsTheFirst() {
    client(1);
    ask(1, Protocol.POP, call(1, 0), popping("q"));
    ask(1, Protocol.POP, call(2, 0), popping("other"));
    ask(1, Protocol.PUSH, call(3, 1), putting("q", new byte[] {1}));
    assertThat(service.commands().table().length("q")).isEqualTo(1);
  }

  @Test
  void aSnapshotKeepsKeysQueuesAndWhoWaitsInOrder() {
    client(1);
    client(2);
    byte[] large = new byte[5 * FRAME];
    Arrays.fill(large, (byte) 7);
    ask(1, Protocol.SET, call(1, 0), putting("large", large));
    ask(1, Protocol.PUSH, call(2, 0), putting("queue", new byte[] {1}));
    ask(1, Protocol.PUSH, call(3, 0), putting("queue", new byte[] {2}));
    ask(2, Protocol.POP, call(1, 0), popping("pops"));
    ask(1, Protocol.POP, call(4, 0), popping("pops"));
    ask(
        2,
        Protocol.BARRIER,
        call(2, 1),
        body -> {
          body.putByte(0);
          body.putInt(2);
          body.putText("barrier");
        });
    restart();
    assertThat(value("large")).isEqualTo(large);
    assertThat(service.commands().table().queued("queue"))
        .containsExactly(new byte[] {1}, new byte[] {2});
    assertThat(service.commands().table().arrived("barrier")).isEqualTo(1);
    ask(1, Protocol.PUSH, call(5, 1), putting("pops", new byte[] {1}));
    ask(1, Protocol.PUSH, call(6, 1), putting("pops", new byte[] {2}));
    assertThat(answer(2, 0)).containsExactly(1, 0, 0, 0, 1);
    assertThat(answer(1, 0)).containsExactly(1, 0, 0, 0, 2);
  }

  @Test
  void aSnapshotKeepsTheFirstHalfOfAMessageAndWills() {
    ClientSession client = client(1);
    byte[] large = new byte[3 * FRAME];
    Arrays.fill(large, (byte) 7);
    ask(1, Protocol.WILL, call(1, 0), putting("will/", new byte[] {3}));
    List<byte[]> frames = frames(Protocol.SET, 101, call(2, 0), putting("large", large));
    assertThat(frames.size()).isGreaterThan(3);
    frames.subList(0, 2).forEach(frame -> take(1, frame));
    restart();
    frames.subList(2, frames.size()).forEach(frame -> take(1, frame));
    assertThat(value("large")).isEqualTo(large);
    service.onSessionClose(client, 0, CloseReason.TIMEOUT);
    assertThat(value("will/1")).containsExactly(3);
  }
}
