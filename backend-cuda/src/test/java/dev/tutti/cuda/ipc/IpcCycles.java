package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.Fds;
import dev.tutti.cuda.access.Parts;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Shares tensors with several processes at once. Each process opens, reads and closes them, and is
 * killed now and then at an arbitrary point. Finally checks that nothing is left.
 */
final class IpcCycles {
  private static final int WARM = 60;
  private static final int LARGEST_FLOATS = 300_000;
  private static final long LONGEST_LIFE_NANOS = 1_500_000;

  private final CudaIpc ipc;
  private final CudaDevice device;
  private final String driver;
  private final int consumers;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicInteger killed = new AtomicInteger();
  private final LongAdder counted = new LongAdder();
  private final LongAdder shareNanos = new LongAdder();
  private final LongAdder openNanos = new LongAdder();
  private final LongAdder closeNanos = new LongAdder();

  /**
   * Creates cycles that have not started.
   *
   * @param driver the driver of the consumers: {@code fake}, which shows no contents, or {@code
   *     gpu}
   */
  IpcCycles(CudaIpc ipc, CudaDevice device, String driver, int consumers) {
    this.ipc = ipc;
    this.device = device;
    this.driver = driver;
    this.consumers = consumers;
  }

  /**
   * Runs the cycles; one in {@code killEvery} consumers is killed while it is working.
   *
   * @return the cost of the run
   */
  String run(int cycles, int killEvery) throws Exception {
    List<IpcProcess> all = new ArrayList<>();
    try {
      for (int i = 0; i < consumers; i++) {
        all.add(new IpcProcess(driver));
      }
      for (IpcProcess consumer : all) {
        consumer.ready();
      }
      inTurns(all, WARM, Integer.MAX_VALUE);
      Remains before = remains(all);
      shareNanos.reset();
      openNanos.reset();
      closeNanos.reset();
      counted.reset();
      long start = System.nanoTime();
      inTurns(all, cycles, killEvery);
      double seconds = (System.nanoTime() - start) / 1e9;
      inTurns(all, WARM, Integer.MAX_VALUE);
      Remains after = remains(all);
      after.assertNoMoreThan(before);
      long count = counted.sum();
      return String.format(
          Locale.ROOT,
          "%d cycles, %d of them killed, in %.1f s; to share %.1f us, to open %.1f, to close %.1f;"
              + " before %s, after %s",
          cycles,
          killed.get(),
          seconds,
          shareNanos.sum() / 1e3 / count,
          openNanos.sum() / 1e3 / count,
          closeNanos.sum() / 1e3 / count,
          before,
          after);
    } finally {
      all.forEach(IpcProcess::kill);
    }
  }

  /** Gives each consumer a thread of its own here. */
  private void inTurns(List<IpcProcess> all, int cycles, int killEvery) throws Exception {
    next.set(0);
    List<Callable<Void>> work = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      int index = i;
      work.add(
          () -> {
            for (int n = next.getAndIncrement(); n < cycles; n = next.getAndIncrement()) {
              if (!cycle(all.get(index), n, n % killEvery == killEvery - 1)) {
                all.get(index).kill();
                all.set(index, new IpcProcess(driver).ready());
              }
            }
            return null;
          });
    }
    try (ExecutorService threads = Executors.newFixedThreadPool(all.size())) {
      for (Future<Void> done : threads.invokeAll(work)) {
        done.get();
      }
    }
  }

  /** Returns whether the consumer is alive. */
  private boolean cycle(IpcProcess consumer, int number, boolean kill) throws Exception {
    int size = 1 + number % 3 * (LARGEST_FLOATS / 3);
    float value = number % 1000 + 1;
    SharedTensor shared;
    long nanos;
    String answer;
    try (Arena late = Arena.ofShared()) {
      Arena arena = number % 2 == 0 ? late : Arena.ofShared();
      Tensor tensor = ipc.allocate(device, arena, DType.FLOAT32, size);
      device.tensors().copyFromHost(tensor.narrow(0, size - 1, 1), Tensor.of(value));
      long start = System.nanoTime();
      shared = ipc.share(tensor);
      nanos = System.nanoTime() - start;
      if (!arena.equals(late)) {
        arena.close(); // retained until it is returned
      }
      Thread killer = kill ? killSoon(consumer) : null;
      answer = ask(consumer, shared);
      if (killer != null) {
        killer.join();
        killed.incrementAndGet();
        shared.close(); // if it was not opened yet
        return false;
      }
    }
    String[] words = answer.split(" ", -1);
    assertThat(words[0]).as(answer).isEqualTo("cycled");
    if (driver.equals("gpu")) {
      assertThat(Float.parseFloat(words[1])).isEqualTo(value);
    }
    counted.increment();
    shareNanos.add(nanos);
    openNanos.add(Long.parseLong(words[2]));
    closeNanos.add(Long.parseLong(words[3]));
    return true;
  }

  private static String ask(IpcProcess consumer, SharedTensor shared) {
    try {
      return consumer.ask("cycle " + HexFormat.of().formatHex(shared.handle()));
    } catch (IOException e) {
      return e.toString(); // killed before it received the command
    }
  }

  private static Thread killSoon(IpcProcess consumer) {
    long life = ThreadLocalRandom.current().nextLong(LONGEST_LIFE_NANOS);
    return Thread.ofPlatform()
        .start(
            () -> {
              LockSupport.parkNanos(life);
              consumer.killNow();
            });
  }

  private Remains remains(List<IpcProcess> all) throws IOException {
    ipc.collect();
    Parts.of(device).sharable().releaseCached();
    device.tensors().releaseCached();
    List<String> states = new ArrayList<>();
    for (IpcProcess consumer : all) {
      states.add(consumer.ask("state"));
    }
    return new Remains(
        ipc.outstanding(),
        ipc.pendingReleaseCount(),
        ipc.sender().eventsInUse(),
        ipc.sender().counterFiles(),
        Parts.of(device).sharable().usage().usedBytes(),
        Fds.open().size(),
        Parts.of(device).context().driver().memory().room().free(),
        states);
  }

  private record Remains(
      int outstanding,
      int limbo,
      int events,
      int files,
      long usedBytes,
      int descriptors,
      long freeBytes,
      List<String> consumers) {
    private static final long FREE_SLACK = 8 << 20;
    private static final int DESCRIPTOR_SLACK = 2;

    void assertNoMoreThan(Remains before) {
      assertThat(outstanding).isZero();
      assertThat(limbo).isZero();
      assertThat(events).isZero();
      assertThat(files).isOne();
      assertThat(usedBytes).isZero();
      assertThat(descriptors).isLessThanOrEqualTo(before.descriptors + DESCRIPTOR_SLACK);
      assertThat(freeBytes).isGreaterThanOrEqualTo(before.freeBytes - FREE_SLACK);
      int most = before.consumers.stream().mapToInt(Remains::descriptors).max().orElseThrow();
      for (String consumer : consumers) {
        assertThat(consumer).startsWith("open 0 ");
        assertThat(descriptors(consumer)).isLessThanOrEqualTo(most + DESCRIPTOR_SLACK);
      }
    }

    private static int descriptors(String state) {
      return Integer.parseInt(state.substring(state.lastIndexOf(' ') + 1));
    }
  }
}
