package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.AgentTerminationException;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the state machine without a cluster: how it handles repeated requests, and what a snapshot
 * preserves.
 */
class ClusterServiceTest {
  private static final int FRAME = 200;
  private static final int STREAM = 77;
  private static final int MIB = 1 << 20;

  @TempDir private Path directory;

  private final Map<Long, ClientSession> clients = new TreeMap<>();
  private final Idling idling = new Idling();
  private ClusterService service = new ClusterService();

  /** Counts the waits for space. */
  private static final class Idling implements IdleStrategy {
    int waits;
    int resets;

    @Override
    public void idle(int workCount) {
      waits += workCount > 0 ? 0 : 1;
    }

    @Override
    public void idle() {
      waits++;
    }

    @Override
    public void reset() {
      resets++;
    }
  }

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
                      case "responseChannel" -> "aeron:ipc";
                      case "responseStreamId" -> STREAM;
                      case "close" -> null;
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
                  case "idleStrategy" -> idling;
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

  /** Replaces the state machine with one that starts from its snapshot. */
  private void restart() {
    List<byte[]> frames = new ArrayList<>();
    boolean[] full = {true};
    service
        .state()
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
    FrameReader reader = service.state().reader(cluster());
    frames.forEach(frame -> reader.onFragment(new UnsafeBuffer(frame), 0, frame.length, null));
  }

  private static long call(long number, int slot) {
    return number << CallNumbers.SLOT_BITS | slot;
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
      ask(1, Protocol.CANCEL, CallNumbers.PROBE, body -> {});
    }
    assertThat(value("k")).isEqualTo(value);

    // A request that was abandoned and sent again is complete, too.
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

  @Test
  void aSnapshotGoesOnAtOnceAfterEachWait() {
    client(1);
    ask(1, Protocol.SET, call(1, 0), putting("large", new byte[5 * FRAME]));
    restart();
    assertThat(idling.waits).isGreaterThan(5);
    assertThat(idling.resets).isEqualTo(idling.waits);
  }

  @Test
  void aReadForWhichThereIsNoRoomFailsAndTheSessionGoesOn() throws Exception {
    ClientSession client = client(1);
    Timing timing = Timing.of(Duration.ofSeconds(5));
    try (EmbeddedDriver driver = EmbeddedDriver.start(directory, "", timing, 2);
        Aeron aeron = EmbeddedDriver.connect(driver.path(), timing)) {
      ClusterCaller caller = Objects.requireNonNull(service.callers.get(1L));
      caller.answerThrough(new ClusterEgress(aeron, client, 101, MIB));
      ask(1, Protocol.SET, call(1, 0), putting("key", new byte[MIB * 3 / 4]));
      for (int i = 1; i <= 3; i++) {
        ask(
            1,
            Protocol.FETCH,
            call(2, i),
            body -> {
              body.putByte(0);
              body.putTexts(List.of("key"));
            });
      }
      ask(1, Protocol.ADD, call(3, 4), adding(5));
      Map<Long, Integer> codes = new TreeMap<>();
      Map<Long, Integer> lengths = new TreeMap<>();
      FrameReader reader =
          new FrameReader(
              101,
              (code, call, body) -> {
                codes.put(call, code);
                lengths.put(call, body.rest().length);
              });
      FragmentAssembler frames =
          new FragmentAssembler(
              (buffer, offset, length, header) ->
                  reader.onFragment(
                      buffer,
                      offset + AeronCluster.SESSION_HEADER_LENGTH,
                      length - AeronCluster.SESSION_HEADER_LENGTH,
                      header));
      Subscription replies = aeron.addSubscription("aeron:ipc", STREAM);
      long deadline = System.nanoTime() + Duration.ofMinutes(2).toNanos();
      while (codes.size() < 5) {
        assertThat(System.nanoTime()).isLessThan(deadline);
        caller.flush();
        replies.poll(frames, 10);
      }
      assertThat(codes)
          .containsEntry(call(1, 0), Protocol.OK)
          .containsEntry(call(2, 1), Protocol.OK)
          .containsEntry(call(2, 2), Protocol.FAILED)
          .containsEntry(call(2, 3), Protocol.FAILED)
          .containsEntry(call(3, 4), Protocol.OK);
      assertThat(lengths).containsEntry(call(2, 1), MIB * 3 / 4 + 8);
      caller.answerThrough(null);
    }
  }

  private boolean isDropped(long client) {
    return Objects.requireNonNull(service.callers.get(client)).dropped;
  }

  @Test
  void keysThatWouldBeTooLongForASnapshotAreRefused() {
    byte[] noText = new byte[Store.MAX_KEY_BYTES];
    Arrays.fill(noText, (byte) 0xFF);
    client(1);
    ask(
        1,
        Protocol.SET,
        call(1, 0),
        body -> {
          body.putBytes(noText);
          body.putBytes(new byte[1]);
        });
    assertThat(isDropped(1)).isTrue();
    client(2);
    ask(2, Protocol.WILL, call(1, 0), putting("k".repeat(Store.MAX_KEY_BYTES - 9), new byte[] {1}));
    assertThat(isDropped(2)).isTrue();
    assertThat(service.commands().table().size()).isZero();

    String longest = "k".repeat(Store.MAX_KEY_BYTES - 10);
    String replaced = "\uFFFD".repeat(Store.MAX_KEY_BYTES / 3);
    ClientSession client = client(3);
    ask(3, Protocol.WILL, call(1, 0), putting(longest, new byte[] {2}));
    ask(3, Protocol.SET, call(2, 0), putting(replaced, new byte[] {3}));
    service.onSessionClose(client, 0, CloseReason.TIMEOUT);
    restart();
    assertThat(value(longest + 1)).containsExactly(2);
    assertThat(value(replaced)).containsExactly(3);
  }

  @Test
  void aSnapshotWithLongKeysIsLoaded() {
    String key = "k".repeat(Store.MAX_KEY_BYTES + 1);
    service.commands().table().set(key, new byte[] {1});
    service.commands().table().push(key, new byte[] {2});
    restart();
    assertThat(value(key)).containsExactly(1);
    assertThat(service.commands().table().queued(key)).containsExactly(new byte[] {2});
  }

  @Test
  void aWaitThatCannotBeReadIsNotKept() {
    client(1);
    ask(
        1,
        Protocol.FETCH,
        call(1, 0),
        body -> {
          body.putByte(0);
          body.putInt(1);
          body.putInt(Integer.MAX_VALUE);
        });
    assertThat(isDropped(1)).isTrue();
    restart();
    assertThat(isDropped(1)).isTrue();
  }

  @Test
  void aSnapshotHasRoomForTheLongestMessage() {
    client(1);
    ask(1, Protocol.ADD, call(1, 0), adding(1));
    ClusterCaller caller = Objects.requireNonNull(service.callers.get(1L));
    Objects.requireNonNull(caller.slots.get(0)).answer = new byte[Protocol.MAX_BODY_BYTES];
    int[] longest = {0};
    service
        .state()
        .save(
            cluster(),
            new FrameWriter(
                (header, body, at, bytes) -> {
                  longest[0] = Math.max(longest[0], at + bytes);
                  return 1;
                },
                MIB,
                0));
    assertThat(longest[0]).isGreaterThan(Protocol.MAX_BODY_BYTES);

    // The header of such a record; the rest need not come.
    FrameReader reader = service.state().reader(cluster());
    new FrameWriter(
            (header, body, at, bytes) -> {
              byte[] frame = frame(header, body, at, bytes);
              reader.onFragment(new UnsafeBuffer(frame), 0, frame.length, null);
              return -2;
            },
            FRAME,
            0)
        .write(1, 0, new UnsafeBuffer(new byte[FRAME]), longest[0], 0);
  }

  @Test
  @Timeout(300)
  void aClientWithManyWillsIsExecutedInAMoment() {
    ClientSession client = client(1);
    int wills = 60_000;
    for (int i = 1; i <= wills; i++) {
      ask(1, Protocol.WILL, call(i, 0), putting("will/", new byte[] {(byte) i}));
    }
    ask(1, Protocol.SET, call(wills + 1, 0), putting("will/2", new byte[] {77}));
    service.onSessionClose(client, 0, CloseReason.TIMEOUT);
    assertThat(value("will/1")).containsExactly(1);
    assertThat(value("will/2")).containsExactly(77);
    assertThat(value("will/3")).containsExactly(2);
    assertThat(value("will/" + (wills + 1))).containsExactly((byte) wills);
  }

  @Test
  void anErrorEndsTheMember() {
    ClientSession client =
        (ClientSession)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {ClientSession.class},
                (proxy, method, arguments) -> {
                  throw new OutOfMemoryError("played");
                });
    assertThatThrownBy(() -> service.onSessionOpen(client, 0))
        .isInstanceOf(AgentTerminationException.class)
        .hasRootCauseMessage("played");
  }
}
