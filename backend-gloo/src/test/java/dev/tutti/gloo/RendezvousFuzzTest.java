package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.store.HashStore;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Runs rendezvous in which one rank publishes something wrong. All ranks must finish by the
 * deadline, either with a working group or with an exception that gives the reason. There are 60
 * rendezvous by default; {@code -Dtutti.fuzz=10000000} makes them 10 thousand. {@link
 * SimulatedRendezvousFuzzTest} does so without shared memory.
 */
class RendezvousFuzzTest {
  private static final int INPUTS = Math.max(60, Integer.getInteger("tutti.fuzz", 0) / 1000);
  private static final int SIZE = 3;
  private static final long SEED = 20_261_121;
  private static final Duration TIMEOUT = Duration.ofMillis(400);
  private static final Duration LONG = GlooWorld.TIMEOUT;
  private static final long MOST_ALLOCATED = 64 << 20;
  private static final int LARGE = 1 << 20;
  private static final String PREFIX = "cpu//";
  private static final List<String> KEYS =
      List.of("0/", "0/", "host/beacon/", "host/memory/", "host/result/", "algorithms/0");
  private static final List<String> TEXTS =
      List.of(
          "",
          "-",
          "!",
          "!\n\u001b",
          "leads 0",
          "leads 0,1",
          "leads 0,1,2",
          "leads 0,1,2,3",
          "leads -1,5",
          "leads 1,2",
          "follows 0",
          "follows 1",
          "follows 2147483648",
          "../../etc/passwd 16777216 two-level",
          "\0 16777216 two-level",
          " 16777216 one-level",
          " -1 two-level",
          "0123456789abcdef tutti-1-1-0123456789abcdef 0,1,2",
          "0123456789abcdef tutti-1-1-0123456789abcdef 0,1,2,3,4,5",
          "0123456789abcdef / 0,1,2",
          "allReduce=ring:99999999999G,ring",
          "allReduce=halving-doubling;broadcast=chain;allGather=ring",
          ";;;=");
  private static final String SHARED = GlooProvider.SHARED_BYTES.name();
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  @TempDir Path directory;

  /** Returns a store that modifies the value set under a key. */
  static Store spoiled(HashStore store, String key, UnaryOperator<byte[]> change) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              boolean changes =
                  method.getName().equals("set")
                      && arguments[1] instanceof byte[]
                      && arguments[0].toString().endsWith(PREFIX + key);
              Object[] passed = arguments;
              if (changes) {
                passed = new Object[] {arguments[0], change.apply((byte[]) arguments[1])};
              }
              try {
                return method.invoke(store, passed);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** Runs a rendezvous of ranks that wait for each other for as long as it takes. */
  private List<Throwable> meet(String key, UnaryOperator<byte[]> change) throws Exception {
    return meet(key, change, LONG, GlooWorld.settings(SHARED, "256K"));
  }

  /** Runs a rendezvous of the ranks; returns what each threw, or null. */
  private List<Throwable> meet(
      String key, UnaryOperator<byte[]> change, Duration timeout, Settings settings)
      throws Exception {
    Store store = spoiled(new HashStore(), key, change);
    Throwable[] thrown = new Throwable[SIZE];
    GlooWorld.inParallel(
        SIZE,
        rank -> {
          long allocated = THREADS.getCurrentThreadAllocatedBytes();
          GroupOptions options =
              GroupOptions.DEFAULT
                  .withStore(store)
                  .withRank(rank)
                  .withSize(SIZE)
                  .withProvider(new HostsProvider(directory, r -> r / 2))
                  .withSettings(settings)
                  .withTimeout(timeout);
          try (ProcessGroup group = ProcessGroup.init(options)) {
            Tensor tensor = Tensor.of(1f);
            group.allReduce(tensor);
            assertThat(tensor.toFloatArray()).containsExactly(SIZE);
          } catch (TuttiException e) {
            thrown[rank] = e;
          }
          assertThat(THREADS.getCurrentThreadAllocatedBytes() - allocated)
              .isLessThan(MOST_ALLOCATED);
          return null;
        });
    return Arrays.asList(thrown);
  }

  @Test
  @Timeout(7200)
  void allRanksAreThroughByTheDeadline() throws Exception {
    int met = 0;
    for (int i = 0; i < INPUTS; i++) {
      SplittableRandom random = new SplittableRandom(SEED + i);
      String key = KEYS.get(i % KEYS.size());
      String spoiled = key.equals("algorithms/0") ? key : key + random.nextInt(SIZE);
      List<Throwable> thrown =
          meet(
              spoiled,
              bytes -> changed(bytes, random),
              TIMEOUT,
              GlooWorld.settings(SHARED, "256K"));
      for (Throwable each : thrown) {
        if (each != null) {
          assertThat(each)
              .as("input %d, %s", i, spoiled)
              .isInstanceOfAny(RendezvousException.class, CollectiveException.class)
              .hasMessageContaining("rank");
        }
      }
      met += thrown.stream().allMatch(each -> each == null) ? 1 : 0;
    }
    assertThat(met).isBetween(INPUTS / 100, INPUTS - INPUTS / 10);
    try (Stream<Path> files = Files.walk(directory)) {
      assertThat(files.filter(Files::isRegularFile)).isEmpty();
    }
  }

  static byte[] changed(byte[] bytes, SplittableRandom random) {
    byte[] copy = bytes.clone();
    switch (random.nextInt(7)) {
      case 0 -> copy = Arrays.copyOf(bytes, random.nextInt(bytes.length));
      case 1 -> copy = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(LARGE));
      case 2 -> random.nextBytes(copy);
      case 3 -> copy = new byte[random.nextInt(LARGE)];
      case 4, 5 -> copy = TEXTS.get(random.nextInt(TEXTS.size())).getBytes(StandardCharsets.UTF_8);
      default -> copy[random.nextInt(copy.length)] = (byte) random.nextInt();
    }
    return copy;
  }

  /**
   * Changes a text that only a follower reads. The follower reports it, and all ranks continue
   * without shared memory.
   */
  @ParameterizedTest
  @CsvSource({"rubbish", "0123456789abcdef / 0", "0123456789abcdef tutti-1-1-0123456789abcdef 0,1"})
  void ranksGoWithoutMemoryThatCannotBeFound(String text) throws Exception {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    List<Throwable> thrown = meet("host/memory/0", good -> bytes);
    assertThat(thrown).hasSize(SIZE).containsOnlyNulls();
  }
}
