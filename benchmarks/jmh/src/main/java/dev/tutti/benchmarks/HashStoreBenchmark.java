package dev.tutti.benchmarks;

import dev.tutti.store.HashStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Times the calls of an in-memory store. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class HashStoreBenchmark {
  private static final List<String> KEY = List.of("key");

  private final HashStore store = new HashStore();
  private final byte[] value = "value".getBytes(StandardCharsets.UTF_8);

  /** Sets the key that is read. */
  @Setup
  public void fill() {
    store.set("key", value);
  }

  /** Overwrites a key. */
  @Benchmark
  public void set() {
    store.set("key", value);
  }

  /** Reads an existing key. */
  @Benchmark
  public byte[] get() {
    return store.get("key", Duration.ofSeconds(1));
  }

  /** Increments a counter. */
  @Benchmark
  public long add() {
    return store.add("count", 1);
  }

  /** Waits for an existing key. */
  @Benchmark
  public void waitForWhatIsThere() {
    store.await(KEY, Duration.ofSeconds(1));
  }

  /** Pushes to a queue and pops from it. */
  @Benchmark
  public byte[] pushAndPop() {
    store.queuePush("queue", value);
    return store.queuePop("queue", Duration.ofSeconds(1));
  }
}
