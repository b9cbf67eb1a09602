package dev.tutti.aeron.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests what calls receive when the thread that reads from the server ends. */
class SessionTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  @TempDir private Path directory;

  /** A socket that has no memory for what it reads. */
  private static final class Full extends Socket {
    @Override
    public InputStream getInputStream() {
      return new InputStream() {
        @Override
        public int read() {
          throw new OutOfMemoryError("played");
        }

        @Override
        public int read(byte[] bytes, int at, int length) {
          throw new OutOfMemoryError("played");
        }
      };
    }

    @Override
    public OutputStream getOutputStream() {
      return OutputStream.nullOutputStream();
    }
  }

  private EmbeddedDriver driver(Timing timing) {
    return EmbeddedDriver.start(directory, "", timing, 2);
  }

  private static Session link(Control control, Aeron aeron, EmbeddedDriver driver) {
    return link(control, aeron, driver, aeron.addExclusivePublication(Channels.IPC, 10));
  }

  private static Session link(
      Control control, Aeron aeron, EmbeddedDriver driver, ExclusivePublication requests) {
    return new Session(
        "played",
        control,
        aeron,
        driver,
        null,
        new Handshake.Session(10, 11, 1, 0, "", "", new byte[0]),
        aeron.addSubscription(Channels.IPC, 11),
        requests,
        false);
  }

  @Test
  void callsFailWhereTheServerIsNotHeardAnyMore() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver = driver(timing);
    Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
    Session link = link(new Control(new Full(), timing), aeron, driver);
    link.start();
    PendingCall call = link.newCall();
    long deadline = System.nanoTime() + LIMIT.toNanos();
    assertThatThrownBy(() -> link.await(call, deadline, true))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("cannot be read: java.lang.OutOfMemoryError: played");
    assertThat(link.isUsable()).isFalse();
    link.release();
  }

  /** A server that reads what a link sends, when asked to. */
  private final class Server implements AutoCloseable {
    final long deadline = System.nanoTime() + LIMIT.toNanos();
    final List<Integer> codes = new ArrayList<>();
    final List<Long> numbers = new ArrayList<>();
    final Session link;
    private final ServerSocket listener = new ServerSocket(0);
    private final Subscription requests;
    private final ExclusivePublication replies;
    private final FrameReader reader = new FrameReader(1, this::take);

    Server() throws IOException {
      Timing timing = Timing.of(Duration.ofSeconds(5));
      EmbeddedDriver driver = driver(timing);
      Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
      requests = aeron.addSubscription(Channels.IPC, 10);
      replies = aeron.addExclusivePublication(Channels.IPC, 11);
      InetSocketAddress address =
          new InetSocketAddress(InetAddress.getLoopbackAddress(), listener.getLocalPort());
      ExclusivePublication publication = aeron.addExclusivePublication(Channels.IPC, 10);
      link = link(Control.connect(address, timing, deadline), aeron, driver, publication);
      link.start();
      // The driver makes room in a new publication some time later; until then nothing is sent.
      while (publication.availableWindow() <= 0) {
        assertThat(System.nanoTime()).as("waited " + LIMIT).isLessThan(deadline);
        Thread.onSpinWait();
      }
    }

    /** Answers a call with the number seven. */
    void answer(long call) {
      BodyWriter body = new BodyWriter();
      body.putLong(7);
      FrameWriter writer = new FrameWriter(replies, 1);
      for (int at = 0; at >= 0; ) {
        assertThat(System.nanoTime()).isLessThan(deadline);
        at = writer.write(Protocol.OK, call, body.buffer(), body.length(), at);
      }
    }

    private void take(int code, long number, BodyReader body) {
      codes.add(code);
      numbers.add(number);
    }

    /** Reads until a request with the given code has arrived. */
    void readUntil(int code) {
      while (!codes.contains(code) && deadline - System.nanoTime() > 0) {
        requests.poll(reader, 1);
      }
    }

    /**
     * Starts to send a request that does not leave at once, and waits until it is waiting for room.
     */
    Thread startToSend(int code, byte[] value) {
      Thread sender =
          Thread.ofPlatform()
              .start(() -> link.send(code, link.newCall(), deadline, body -> body.putBytes(value)));
      while (!isInParts(sender) || sender.getState() != Thread.State.TIMED_WAITING) {
        assertThat(sender.isAlive()).as("the request waits for room").isTrue();
        Thread.onSpinWait();
      }
      return sender;
    }

    private static boolean isInParts(Thread sender) {
      return Arrays.stream(sender.getStackTrace())
          .anyMatch(frame -> frame.getMethodName().equals("sendInParts"));
    }

    @Override
    public void close() throws IOException {
      link.release();
      listener.close();
    }
  }

  @Test
  void theServerHearsThatAClientLeaves() throws Exception {
    try (Server server = new Server();
        Socket there = server.listener.accept()) {
      server.link.release();
      assertThat(there.getInputStream().readAllBytes()).containsExactly(Handshake.GOODBYE);
    }
  }

  @Test
  void anAnswerThatCameBeforeTheGoodbyeCounts() throws Exception {
    try (Server server = new Server();
        Socket there = server.listener.accept()) {
      PendingCall first = server.link.newCall();
      server.answer(first.number);
      assertThat(server.link.await(first, server.deadline, true)).isTrue();
      PendingCall call = server.link.newCall();
      server.answer(call.number);
      there.getOutputStream().write(Handshake.GOODBYE);
      while (server.link.isUsable()) {
        assertThat(System.nanoTime()).isLessThan(server.deadline);
        Thread.onSpinWait();
      }
      assertThat(server.link.await(call, server.deadline, true)).isTrue();
      assertThat(call.code()).isEqualTo(Protocol.OK);
      assertThat(call.body().readLong()).isEqualTo(7);
    }
  }

  @Test
  void theServerDoesNotHearThatALostClientLeaves() throws Exception {
    try (Server server = new Server();
        Socket there = server.listener.accept()) {
      there.shutdownOutput();
      while (server.link.isUsable()) {
        assertThat(System.nanoTime()).isLessThan(server.deadline);
        Thread.onSpinWait();
      }
      server.link.release();
      assertThat(there.getInputStream().readAllBytes()).isEmpty();
    }
  }

  @Test
  void aCallThatCannotBeTakenBackNowIsTakenBackLater() throws Exception {
    try (Server server = new Server()) {
      Session link = server.link;
      Thread sender = server.startToSend(Protocol.SET, new byte[1 << 20]);
      PendingCall late = link.newCall();
      assertThatThrownBy(() -> link.send(Protocol.CANCEL, late, System.nanoTime(), body -> {}))
          .isInstanceOf(StoreTimeoutException.class);
      server.readUntil(Protocol.CANCEL);
      assertThat(server.numbers).last().isEqualTo(late.number);
      server.readUntil(Protocol.SET);
      sender.join();
      assertThat(server.codes).containsExactlyInAnyOrder(Protocol.SET, Protocol.CANCEL);
    }
  }

  @Test
  void aShortRequestDoesNotWaitForALongOne() throws Exception {
    List<Integer> codes = codesOfTwoLongRequestsAndAShortOne();
    // The thread of the short one may get no core until a long one is sent.
    for (int i = 0; i < 20 && codes.getFirst() != Protocol.COUNT; i++) {
      codes = codesOfTwoLongRequestsAndAShortOne();
    }
    assertThat(codes).containsExactly(Protocol.COUNT, Protocol.SET, Protocol.APPEND);
  }

  /** Returns the codes in the order in which the requests have arrived. */
  private List<Integer> codesOfTwoLongRequestsAndAShortOne() throws Exception {
    try (Server server = new Server()) {
      Thread first = server.startToSend(Protocol.SET, new byte[1 << 20]);
      Thread second = server.startToSend(Protocol.APPEND, new byte[1 << 20]);
      Thread third = server.startToSend(Protocol.COUNT, new byte[1]);
      server.readUntil(Protocol.APPEND);
      for (Thread sender : List.of(first, second, third)) {
        sender.join();
      }
      return server.codes;
    }
  }

  @Test
  void aCallIsTakenBackWhenThereIsRoomAlsoWhereNobodySendsAnyMore() throws Exception {
    try (Server server = new Server()) {
      Session link = server.link;
      AtomicInteger sent = new AtomicInteger();
      assertThatThrownBy(
              () -> {
                while (server.deadline - System.nanoTime() > 0) {
                  link.send(Protocol.COUNT, link.newCall(), System.nanoTime(), body -> {});
                  sent.incrementAndGet();
                }
              })
          .isInstanceOf(StoreTimeoutException.class);
      assertThat(sent).hasValueGreaterThan(100);
      PendingCall first = link.newCall();
      PendingCall second = link.newCall();
      for (PendingCall late : List.of(first, second)) {
        assertThatThrownBy(() -> link.send(Protocol.CANCEL, late, System.nanoTime(), body -> {}))
            .isInstanceOf(StoreTimeoutException.class);
      }
      server.readUntil(Protocol.CANCEL);
      server.codes.removeLast();
      server.readUntil(Protocol.CANCEL);
      assertThat(server.codes).endsWith(Protocol.CANCEL);
      assertThat(server.numbers).endsWith(first.number, second.number);
    }
  }
}
