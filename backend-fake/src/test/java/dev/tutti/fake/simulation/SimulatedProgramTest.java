package dev.tutti.fake.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.fake.simulation.SimulatedProgram.Outcome;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests programs of one process in a simulation. */
@Isolated("threads of other tests in shared locks would bring in real time")
class SimulatedProgramTest {
  private static final String OPTION = "--add-opens=java.base/java.lang=ALL-UNNAMED";

  /** Prints whether this JVM can simulate, and what happens when it tries twice. */
  static final class Main {
    public static void main(String[] args) {
      System.out.println(SimulatedProgram.unusableReason().orElse("usable"));
      for (int i = 0; i < 2; i++) {
        try {
          System.out.println(SimulatedProgram.run(0, program -> {}).failure());
        } catch (IllegalStateException e) {
          System.out.println(e.getMessage());
        }
      }
    }
  }

  @Test
  void aJvmWithoutTheOptionIsToldWhich() throws Exception {
    String reason = "a simulation needs the JVM option " + OPTION;
    assertThat(linesOf()).containsExactly(reason, reason, reason);
    assertThat(linesOf(OPTION)).containsExactly("usable", "null", "null");
  }

  private static List<String> linesOf(String... options) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    builder.command().addAll(List.of(options));
    builder
        .command()
        .addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
    Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).isZero();
    return output.lines().toList();
  }

  @Test
  void theStackOfAThreadThatMayRunCanBeRead() {
    List<String> ends = new ArrayList<>();
    Outcome outcome =
        SimulatedProgram.run(
            0,
            program -> {
              CountDownLatch released = new CountDownLatch(1);
              Thread other =
                  program
                      .time()
                      .start(
                          "other",
                          () -> {
                            try {
                              released.await();
                              ends.add("other");
                            } catch (InterruptedException e) {
                              ends.add("interrupted");
                            }
                          });
              SimulatedWorld.sleep(Duration.ofMillis(1));
              released.countDown();
              assertThat(other.getStackTrace()).isNotEmpty();
              other.join();
            });
    assertThat(outcome.failure()).isNull();
    assertThat(ends).containsExactly("other");
  }

  @Test
  void aSeedDecidesWhoIsFirstInTheStore() {
    assertThat(first(3)).isEqualTo(first(3));
    assertThat(List.of(first(0), first(1), first(2), first(3), first(4), first(5)))
        .anySatisfy(first -> assertThat(first).startsWith("0 "))
        .anySatisfy(first -> assertThat(first).startsWith("1 "));
  }

  /** Returns which of two ranks reached the store first, and the hash of the run. */
  private static String first(long seed) {
    AtomicReference<String> first = new AtomicReference<>("");
    Outcome outcome =
        SimulatedProgram.run(
            seed,
            program ->
                ThreadedWorld.of(2)
                    .withTime(program.time())
                    .withOptions(options -> options.withStore(program.store(Duration.ofMinutes(1))))
                    .run(
                        group -> {
                          Store store = group.store();
                          byte[] own = {(byte) ('0' + group.rank())};
                          Store.Swap _ = store.compareSet("first", null, own);
                          first.set(new String(store.get("first"), StandardCharsets.UTF_8));
                        }));
    assertThat(outcome.failure()).isNull();
    return first.get() + " " + outcome.hash();
  }

  @Test
  void whatTheBodyThrowsIsTheFailure() {
    Exception thrown = new Exception("thrown");
    Outcome outcome =
        SimulatedProgram.run(
            1,
            program -> {
              program.time().park(this, Duration.ofHours(1).toNanos());
              throw thrown;
            });
    assertThat(outcome.failure()).isSameAs(thrown);
    assertThat(outcome.steps()).isPositive();
  }
}
