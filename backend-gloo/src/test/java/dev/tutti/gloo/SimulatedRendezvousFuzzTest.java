package dev.tutti.gloo;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.Simulation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Lets ranks on simulated hosts meet of which one publishes something wrong, as {@link
 * RendezvousFuzzTest} does with ranks that share memory. Each seed makes an input of its own.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedRendezvousFuzzTest {
  private static final int SIZE = 3;
  private static final Duration TIMEOUT = Duration.ofSeconds(20);
  private static final List<String> KEYS =
      List.of("0/0", "0/1", "0/2", "host/beacon/1", "host/result/0", "host/result/2");

  @TempDir static Path directory;

  /** Returns what each rank threw, or null. */
  private static List<Throwable> meet(String key, UnaryOperator<byte[]> change) throws Exception {
    Store store = RendezvousFuzzTest.spoiled(Simulation.store(), key, change);
    Throwable[] thrown = new Throwable[SIZE];
    List<Boolean> _ =
        RanksOnHosts.run(
            SIZE,
            store,
            (options, rank) -> {
              try (ProcessGroup group = ProcessGroup.init(alone(options, rank))) {
                Tensor tensor = Tensor.of(1f);
                group.allReduce(tensor);
                assertThat(tensor.toFloatArray()).containsExactly(SIZE);
              } catch (TuttiException e) {
                thrown[rank] = e;
              }
              return true;
            });
    return Arrays.asList(thrown);
  }

  /** Returns options for a rank that looks for others to share memory with, and sees none. */
  private static GroupOptions alone(GroupOptions options, int rank) throws IOException {
    Path own = Files.createDirectories(directory.resolve("host" + rank));
    return options
        .withTimeout(TIMEOUT)
        .withSettings(
            options
                .settings()
                .with(GlooProvider.SHARED_BYTES.name(), "256K")
                .with(GlooProvider.SHARED_DIRECTORY.name(), own.toString()));
  }

  @Simulated(seeds = 40)
  void allRanksAreThroughByTheDeadline() throws Exception {
    SplittableRandom random = new SplittableRandom(Simulation.time().random());
    String key = KEYS.get(random.nextInt(KEYS.size()));
    List<Throwable> thrown = meet(key, bytes -> RendezvousFuzzTest.changed(bytes, random));
    assertThat(Simulation.now()).as(key).isLessThan(TIMEOUT.multipliedBy(2));
    assertThat(thrown)
        .as(key)
        .allSatisfy(
            each -> {
              if (each != null) {
                assertThat(each)
                    .isInstanceOfAny(RendezvousException.class, CollectiveException.class)
                    .hasMessageContaining("rank");
              }
            });
    try (Stream<Path> files = Files.walk(directory)) {
      assertThat(files.filter(Files::isRegularFile)).isEmpty();
    }
  }

  /** Changes one text, which all ranks read and none accepts. */
  @Simulated
  void everyRankNamesWhoPublishedRubbish() throws Exception {
    assertNamed("host/beacon/1", "rubbish", "what rank 1 published to share memory: not an offer");
    assertNamed(
        "host/beacon/2",
        "../passwd 262144 two-level",
        "what rank 2 published to share memory: not an offer");
    assertNamed(
        "host/result/0",
        "leads 0,7",
        "what rank 0 published to share memory: expected rank 0, then ascending ranks of 0..2");
    assertNamed("host/result/0", "leads 0,2", "rank 0 leads rank 2, which does not follow it");
    assertNamed(
        "host/result/1", "follows x", "what rank 1 published to share memory: not a rank: 'x'");
    assertNamed("0/2", "short", "cannot read the Gloo address of rank 2");
  }

  private static void assertNamed(String key, String text, String message) throws Exception {
    assertThat(meet(key, good -> text.getBytes(UTF_8)))
        .hasSize(SIZE)
        .allSatisfy(
            each ->
                assertThat(each).isInstanceOf(TuttiException.class).hasMessageContaining(message));
  }

  /** Replaces the table with another one, which all ranks must then use. */
  @Simulated
  void rankZeroGoesByTheTableThatTheOthersRead() throws Exception {
    byte[] bytes = "allReduce=halving-doubling".getBytes(UTF_8);
    assertThat(meet("algorithms/0", good -> bytes)).hasSize(SIZE).containsOnlyNulls();
  }

  @Simulated
  void theTableOfRankZeroIsChecked() throws Exception {
    byte[] bytes = "allReduce=none".getBytes(UTF_8);
    List<Throwable> thrown = meet("algorithms/0", good -> bytes);
    // A rank that is later than the first reader may find only that the first one has left.
    assertThat(thrown)
        .hasSize(SIZE)
        .allSatisfy(each -> assertThat(each).isInstanceOf(TuttiException.class))
        .anySatisfy(
            each -> assertThat(each).hasMessageContaining("the algorithms that rank 0 published"));
  }
}
