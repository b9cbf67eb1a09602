package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tutti.gloo.transport.ScriptedSocket.End;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.gloo.transport.ring.RingCorruptedException;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.gloo.transport.ring.RingReader;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.gloo.transport.ring.Sleep;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Lets a pair read what conforming and nonconforming peers send, through sockets and through rings.
 * 10,000 inputs each by default; {@code -Dtutti.fuzz=10000000} makes them 10 million, {@code
 * -Dtutti.fuzz.seed} chooses others.
 */
class PairFuzzTest {
  private static final int INPUTS = Integer.getInteger("tutti.fuzz", 10_000);
  private static final long SEED = Long.getLong("tutti.fuzz.seed", 20_261_121);
  private static final long MOST_ALLOCATED = 512 * 1024;
  private static final int WARM_UP = 500;
  private static final int RING = 4096;
  private static final int MOST_TURNS = 10_000;
  private static final int SELF = (int) ProcessHandle.current().pid();
  private static final long NUMBER = 0x1122334455667788L;

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private final MemorySegment memory =
      Arena.ofAuto().allocate(2 * (RingMemory.HEADER + RING) + RingMemory.LINE, 128);
  private final MemorySegment inRing = memory.asSlice(0, RingMemory.HEADER + RING);
  private final MemorySegment outRing =
      memory.asSlice(RingMemory.HEADER + RING, RingMemory.HEADER + RING);
  private final MemorySegment sleep =
      memory.asSlice(2 * (RingMemory.HEADER + RING), RingMemory.LINE);
  private final MemorySegment number = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, NUMBER);
  private int delivered;
  private int refused;

  private interface Input {
    void run(SplittableRandom random, FuzzedTransport peers) throws Exception;
  }

  private void runAll(Input input) throws Exception {
    try (FuzzedTransport peers = new FuzzedTransport()) {
      for (int i = 0; i < INPUTS; i++) {
        try {
          peers.next();
          SplittableRandom random = new SplittableRandom(SEED + i);
          peers.locked(() -> input.run(random, peers));
          peers.locked(peers::endPair);
        } catch (Exception | Error e) {
          throw new AssertionError("input " + i + ": " + e, e);
        }
      }
    }
    assertThat(delivered).isGreaterThan(INPUTS / 10);
    assertThat(refused).isGreaterThan(INPUTS / 10);
  }

  @Test
  @Timeout(1800)
  void aSocketDeliversOrEndsThePair() throws Exception {
    runAll(this::throughSocket);
  }

  @Test
  @Timeout(1800)
  void aRingDeliversOrEndsThePair() throws Exception {
    runAll(this::throughRing);
  }

  private void throughSocket(SplittableRandom random, FuzzedTransport peers) {
    ScriptedMessages messages = new ScriptedMessages(random, peers.isTutti(), false);
    boolean valid = random.nextInt(4) == 0;
    byte[] stream =
        valid ? Mutations.joined(messages.frames()) : Mutations.spoiled(random, messages.frames());
    End end = random.nextInt(8) > 0 ? End.SILENCE : random.nextBoolean() ? End.CLOSE : End.RESET;
    ScriptedSocket socket = new ScriptedSocket(random, stream, valid ? End.SILENCE : end);
    Pair pair = peers.pair();
    Connection connection = pair.connection;
    connection.attach(socket, null, socket.key());
    messages.begin(peers.transport(), pair.rank);
    long before = THREADS.getCurrentThreadAllocatedBytes();
    for (int turn = 0; !socket.isDrained() && pair.failure() == null; turn++) {
      assertTurn(turn);
      connection.readable();
    }
    connection.readable();
    long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
    messages.end(peers.transport(), pair.rank);
    connection.flush();
    check(peers, messages, valid, allocated);
    if (valid) {
      messages.assertSent(socket.sent());
    }
  }

  private static void assertTurn(int turn) {
    if (turn == MOST_TURNS) {
      throw new AssertionError("reads without an end");
    }
  }

  private void check(
      FuzzedTransport peers, ScriptedMessages messages, boolean valid, long allocated) {
    Pair pair = peers.pair();
    Throwable failure = pair.failure();
    if (valid) {
      if (failure != null) {
        throw new AssertionError("refused what keeps to the protocol", failure);
      }
      messages.assertReceived();
      delivered++;
    } else if (failure != null) {
      boolean known =
          failure instanceof PeerLostException
              || (failure instanceof PeerMismatchException
                  && String.valueOf(failure.getMessage()).startsWith("ranks disagree"));
      if (!known) {
        throw new AssertionError("ended by another failure", failure);
      }
      messages.assertEnded();
      refused++;
    }
    // One-time effects, such as class loading, do not count.
    if (allocated > MOST_ALLOCATED && delivered + refused > WARM_UP) {
      throw new AssertionError("allocated " + allocated + " bytes");
    }
    peers.deliver();
  }

  private void throughRing(SplittableRandom random, FuzzedTransport peers) throws Exception {
    memory.fill((byte) 0);
    ScriptedMessages messages = new ScriptedMessages(random, peers.isTutti(), true);
    boolean valid = random.nextInt(4) == 0;
    boolean spoilsFrames = !valid && random.nextInt(3) > 0;
    byte[] stream =
        spoilsFrames
            ? Mutations.spoiled(random, messages.frames())
            : Mutations.joined(messages.frames());
    byte[] bells = bells(random, valid);
    End end = valid || random.nextInt(8) > 0 ? End.SILENCE : End.CLOSE;
    ScriptedSocket socket = new ScriptedSocket(random, bells, end);
    Pair pair = peers.pair();
    Connection connection = pair.connection;
    connection.attach(socket, null, socket.key());
    connection.share(new RingWriter(outRing), new RingReader(inRing), new Sleep(sleep));
    if (messages.offers()) {
      connection.transfers().open(new RemoteMemory(SELF, number.address(), NUMBER));
    }
    messages.begin(peers.transport(), pair.rank);
    RingPeer peer = new RingPeer(random, stream, inRing, outRing);
    long before = THREADS.getCurrentThreadAllocatedBytes();
    long own = 0;
    boolean spoilsWords = !valid && !spoilsFrames;
    for (int turn = 0; isOpen(peer, connection) && pair.failure() == null; ) {
      assertTurn(turn++);
      long start = THREADS.getCurrentThreadAllocatedBytes();
      peer.exchange();
      if (spoilsWords && random.nextInt(4) == 0) {
        spoilWord(random);
      }
      own += THREADS.getCurrentThreadAllocatedBytes() - start;
      if (random.nextInt(4) == 0) {
        connection.ready(socket.key());
      }
      connection.pollRing();
      connection.flush();
      if (peer.isStuck()) {
        break;
      }
    }
    connection.pollRing();
    connection.ready(socket.key());
    long allocated = THREADS.getCurrentThreadAllocatedBytes() - before - own;
    messages.end(peers.transport(), pair.rank);
    connection.pollRing();
    connection.flush();
    check(peers, messages, valid, allocated);
    if (valid) {
      while (!peer.isStuck()) {
        connection.flush();
        peer.exchange();
      }
      messages.assertSent(peer.received());
    }
  }

  private static boolean isOpen(RingPeer peer, Connection connection) {
    return !peer.isDone() || connection.hasUnsent() || connection.hasRingWork();
  }

  /**
   * Returns what arrives on the socket beside a ring: doorbells, a farewell, or arbitrary bytes.
   */
  private static byte[] bells(SplittableRandom random, boolean valid) {
    byte[] bell = RawPeer.words(Header.BYTES, Header.DOORBELL, 0, 0, 0, 0);
    List<byte[]> frames =
        switch (random.nextInt(4)) {
          case 0 -> List.of();
          case 1 -> List.of(bell, bell, bell);
          default -> List.of(bell);
        };
    return valid || random.nextInt(3) > 0
        ? Mutations.joined(frames)
        : Mutations.spoiled(random, frames);
  }

  private void spoilWord(SplittableRandom random) {
    long garbage =
        switch (random.nextInt(5)) {
          case 0 -> random.nextLong();
          case 1 -> random.nextInt(2 * RING);
          case 2 -> Long.MAX_VALUE;
          case 3 -> Long.MIN_VALUE;
          default -> -1;
        };
    switch (random.nextInt(5)) {
      case 0 -> inRing.set(ValueLayout.JAVA_LONG, RingWriter.TAIL, garbage);
      case 1 -> outRing.set(ValueLayout.JAVA_LONG, RingWriter.HEAD, garbage);
      case 2 -> inRing.set(ValueLayout.JAVA_LONG, RingWriter.WAITS, garbage);
      case 3 -> sleep.set(ValueLayout.JAVA_LONG, 0, garbage);
      default ->
          inRing.set(
              ValueLayout.JAVA_LONG_UNALIGNED,
              RingMemory.HEADER + random.nextInt(RING - 8),
              garbage);
    }
  }

  /** The other end of the rings, which keeps to their protocol. */
  private static final class RingPeer {
    private final SplittableRandom random;
    private final ByteBuffer input;
    private final RingWriter out;
    private final RingReader in;
    private final ByteBuffer received = ByteBuffer.allocate(256 * 1024);
    private int idle;

    RingPeer(SplittableRandom random, byte[] stream, MemorySegment out, MemorySegment in) {
      this.random = random;
      this.input = ByteBuffer.wrap(stream);
      this.out = new RingWriter(out);
      this.in = new RingReader(in);
    }

    boolean isDone() {
      return !input.hasRemaining();
    }

    /**
     * Returns whether nothing has moved for long because a word says that there is no space, or no
     * byte.
     */
    boolean isStuck() {
      return idle > 64;
    }

    byte[] received() {
      byte[] bytes = new byte[received.position()];
      received.get(0, bytes);
      return bytes;
    }

    /** Writes some bytes and reads what is available. */
    void exchange() {
      int moved = 0;
      try {
        int end = input.limit();
        int wanted = random.nextInt(3) == 0 ? random.nextInt(60) : input.remaining();
        input.limit(Math.min(end, input.position() + wanted));
        moved += out.write(input);
        input.limit(end);
        moved += in.read(received);
      } catch (RingCorruptedException e) {
        input.position(input.limit());
      }
      idle = moved == 0 ? idle + 1 : 0;
    }
  }
}
