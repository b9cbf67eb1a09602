package dev.tutti.gloo.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.TestContexts;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.TestOperation;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.TransportRendezvous;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the collectives of one of two ranks while the other rank fills the shared memory with
 * arbitrary data. The collectives must end soon, successfully or not, and use no more memory than
 * they need. There are 10,000 inputs by default; {@code -Dtutti.fuzz=10000000} makes them 10
 * million.
 */
class ShmFuzzTest {
  private static final int INPUTS = Integer.getInteger("tutti.fuzz", 10_000);
  private static final long SEED = 20_261_121;
  private static final Duration TIMEOUT = Duration.ofMillis(1);
  private static final Duration LIMIT = Duration.ofSeconds(100);
  private static final int WARM_UP = 500;
  private static final int RARE = 1000;
  private static final long MOST_ALLOCATED = 256 * 1024;
  private static final int PEER = 1;
  private static final int COUNT = 40;
  private static final int LARGE = 5000;

  private static final ShmLayout LAYOUT = ShmLayout.within(2, 256 * 1024);
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** An endpoint that connects to no rank: it is asked only which ranks are present. */
  static class Alone extends Endpoint {
    @Override
    public int rank() {
      return 0;
    }

    @Override
    public int size() {
      return 2;
    }

    @Override
    public int rankInGroup(int number) {
      return number;
    }

    @Override
    public Throwable failureOf(int peer) {
      return null;
    }

    @Override
    public void watch(int peer) {}

    @Override
    protected Transport transport() {
      throw new AssertionError();
    }
  }

  private interface Call {
    void run(ShmBackend collectives, Operation op) throws Exception;
  }

  /** A collective, and the signature that all ranks use for it. */
  private record Collective(long signature, Call call) {}

  private static final Tensor SMALL = Tensor.allocate(DType.FLOAT32, COUNT);
  private static final Tensor BIG = Tensor.allocate(DType.FLOAT32, LARGE);
  private static final Tensor BOTH = Tensor.allocate(DType.FLOAT32, 2 * COUNT);
  private static final List<Tensor> PAIR =
      List.of(Tensor.allocate(DType.FLOAT32, COUNT), Tensor.allocate(DType.FLOAT32, COUNT));
  private static final Tensor SPARSE =
      Tensor.sparse(Tensor.of(1L, 5L).view(1, 2), Tensor.of(1f, 2f), 50);
  private static final long SMALL_BYTES = 4L * COUNT;

  private static final List<Collective> COLLECTIVES =
      List.of(
          new Collective(
              reduction(OpType.ALL_REDUCE, SMALL),
              (collectives, op) -> collectives.allReduce(op, SMALL, ReduceOp.SUM)),
          new Collective(
              reduction(OpType.ALL_REDUCE, BIG),
              (collectives, op) -> collectives.allReduce(op, BIG, ReduceOp.SUM)),
          new Collective(
              reduction(OpType.REDUCE, BIG),
              (collectives, op) -> collectives.reduce(op, BIG, ReduceOp.SUM, 0)),
          new Collective(
              Signature.of(OpType.BROADCAST, DType.FLOAT32, 1, SMALL_BYTES),
              (collectives, op) -> collectives.broadcast(op, SMALL, 1)),
          new Collective(
              Signature.of(OpType.ALL_GATHER, DType.FLOAT32, 0, SMALL_BYTES),
              (collectives, op) -> collectives.allGatherInto(op, BOTH, SMALL)),
          new Collective(
              Signature.of(OpType.GATHER, DType.FLOAT32, 0, SMALL_BYTES),
              (collectives, op) -> collectives.gather(op, PAIR, SMALL, 0)),
          new Collective(
              Signature.of(OpType.SCATTER, DType.FLOAT32, 1, SMALL_BYTES),
              (collectives, op) -> collectives.scatter(op, SMALL, List.of(), 1)),
          new Collective(
              Signature.of(OpType.ALL_TO_ALL, DType.FLOAT32, 0, 0),
              (collectives, op) -> collectives.allToAll(op, PAIR, List.of(SMALL, SMALL))),
          new Collective(
              reduction(OpType.REDUCE_SCATTER, SMALL),
              (collectives, op) -> collectives.reduceScatterInto(op, SMALL, BOTH, ReduceOp.SUM)),
          new Collective(
              Signature.of(OpType.ALL_REDUCE_SPARSE, DType.FLOAT32, ReduceOp.Kind.SUM, 0, 0),
              (collectives, op) -> collectives.allReduceSparse(op, SPARSE, ReduceOp.SUM)),
          new Collective(
              Signature.of(OpType.BARRIER), (collectives, op) -> collectives.barrier(op)));

  private static long reduction(OpType type, Tensor tensor) {
    return Signature.of(type, tensor.dtype(), ReduceOp.Kind.SUM, 0, tensor.byteSize());
  }

  @Test
  @Timeout(1800)
  void collectivesEndWhateverAPeerWrites() throws Exception {
    int ended = 0;
    int failed = 0;
    try (ShmFile memory = ShmFile.ofOne(LAYOUT.bytes(), Time.SYSTEM)) {
      for (int i = 0; i < INPUTS; i++) {
        SplittableRandom random = new SplittableRandom(SEED + i);
        Collective collective = COLLECTIVES.get(random.nextInt(COLLECTIVES.size()));
        ShmChannel channel = new ShmChannel(memory, LAYOUT, new Alone(), 0);
        ShmBackend collectives =
            new ShmBackend(
                null, channel, new SymmetricMemories(channel, null, "g", null, 0), true, true);
        trample(memory.segment(), random, collective.signature());
        long allocated = THREADS.getCurrentThreadAllocatedBytes();
        long start = System.nanoTime();
        try {
          collective.call().run(collectives, new TestOperation(TIMEOUT));
          ended++;
        } catch (PeerMismatchException
            | IllegalStateException
            | TimeoutException
            | PeerLostException e) {
          assertNamesARank(e);
          failed++;
        } catch (Exception | Error e) {
          throw new AssertionError("input " + i + ": " + e, e);
        }
        if (Duration.ofNanos(System.nanoTime() - start).compareTo(LIMIT) > 0) {
          throw new AssertionError("input " + i + " took more than " + LIMIT);
        }
        allocated = THREADS.getCurrentThreadAllocatedBytes() - allocated;
        // One-time effects, such as class loading, do not count.
        if (allocated > MOST_ALLOCATED && i > WARM_UP) {
          throw new AssertionError("input " + i + " allocated " + allocated + " bytes");
        }
      }
    }
    assertThat(ended).isGreaterThan(INPUTS / 20);
    assertThat(failed).isGreaterThan(INPUTS / 20);
  }

  private static void assertNamesARank(Exception e) {
    if (!String.valueOf(e.getMessage()).contains("rank")) {
      throw new AssertionError("names no rank", e);
    }
  }

  /** Writes what the peer may write: mostly numbers far ahead, so that no rank waits for it. */
  private static void trample(MemorySegment memory, SplittableRandom random, long signature) {
    long control = LAYOUT.control(PEER);
    put(memory, control + ShmLayout.OPERATION, random.nextLong());
    for (int i = 0; i < 2; i++) {
      put(memory, control + ShmLayout.SIGNATURES + 8L * i, signature(random, signature));
      put(memory, control + ShmLayout.STAGED + 8L * i, signature(random, signature));
      long slot = LAYOUT.slot(PEER, i);
      put(memory, slot, ahead(random));
      put(memory, slot + 8, signature(random, signature));
      words(memory, slot + ShmLayout.SLOT_HEADER, random);
      words(memory, LAYOUT.stage(PEER, i), random);
    }
    put(memory, control + ShmLayout.PUBLISHED, ahead(random));
    put(memory, control + ShmLayout.REDUCED, ahead(random));
    put(memory, control + ShmLayout.FINISHED, ahead(random));
  }

  private static long ahead(SplittableRandom random) {
    return random.nextInt(RARE) == 0 ? random.nextInt(-3, 3) : Long.MAX_VALUE - random.nextInt(9);
  }

  private static long signature(SplittableRandom random, long signature) {
    return random.nextInt(16) == 0 ? random.nextLong() : signature;
  }

  private static void words(MemorySegment memory, long at, SplittableRandom random) {
    for (int i = 0; i < 20; i++) {
      long word =
          switch (random.nextInt(8)) {
            case 0 -> random.nextLong();
            case 1 -> random.nextInt(-3, 60);
            case 2 -> random.nextInt(RARE) == 0 ? Long.MAX_VALUE : 50;
            default -> i == 0 || random.nextBoolean() ? SMALL_BYTES : 0;
          };
      put(memory, at + 8L * i, word);
    }
  }

  private static void put(MemorySegment memory, long at, long word) {
    memory.set(ValueLayout.JAVA_LONG, at, word);
  }

  @Test
  void lengthsOfTextsAreChecked(@TempDir Path directory) throws Exception {
    BackendContext context = TestContexts.of(0, 1, new HashStore(), Duration.ofSeconds(100));
    for (int length : new int[] {-1, 1025, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
      try (ShmFile memory = ShmFile.ofOne(LAYOUT.bytes(), Time.SYSTEM);
          Transport transport =
              new TransportRendezvous(context, InetAddress.ofLiteral("127.0.0.1"), false, false)
                  .connect(Duration.ZERO)) {
        ShmChannel channel = new ShmChannel(memory, LAYOUT, new Alone(), 0);
        long signature = Signature.of(OpType.ALLOCATE_SYMMETRIC, DType.UINT8, 0, 100);
        trample(memory.segment(), new SplittableRandom(2), signature);
        for (int i = 0; i < 2; i++) {
          long slot = LAYOUT.slot(PEER, i);
          put(memory.segment(), slot, Long.MAX_VALUE);
          put(memory.segment(), slot + 8, signature);
          memory.segment().set(ValueLayout.JAVA_INT, slot + ShmLayout.SLOT_HEADER, length);
        }
        SymmetricMemories memories = new SymmetricMemories(channel, transport, "g", directory, 0);
        assertThatThrownBy(() -> memories.allocate(new TestOperation(Duration.ofSeconds(100)), 100))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("a text of " + length + " bytes");
        try (Stream<Path> files = Files.list(directory)) {
          assertThat(files).isEmpty();
        }
      }
    }
  }
}
