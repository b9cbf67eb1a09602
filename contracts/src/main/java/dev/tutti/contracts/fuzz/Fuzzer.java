package dev.tutti.contracts.fuzz;

import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.TestTier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.opentest4j.TestAbortedException;

/**
 * A runner of random programs for a limited time, which reports the first one that fails, with its
 * seed and reduced in size.
 *
 * <p>These system properties apply, with their defaults: {@code tutti.fuzzSeconds}, how long to run
 * (3); {@code tutti.fuzzSeed}, the first seed (1); {@code tutti.fuzzPatience}, the seconds without
 * progress after which a program counts as hanging (60); {@code tutti.fuzzProgram}, the file of a
 * program to run instead; {@code tutti.fuzzRepeat}, how often to run it.
 */
final class Fuzzer {
  private static final System.Logger LOG = System.getLogger(Fuzzer.class.getName());
  private static final Duration LEAST_PATIENCE = Duration.ofSeconds(5);
  private static final Duration MINIMIZING = Duration.ofMinutes(3);
  private static final int ATTEMPTS = 3;
  private static final int MOST_RANKS_OF_A_MIXTURE = 4;

  private final ContractSubject subject;
  private final ProgramHost host;
  private final Duration patience;
  private final Duration leastPatience;

  Fuzzer(ContractSubject subject, ProgramHost host, Duration patience) {
    this(subject, host, patience, LEAST_PATIENCE);
  }

  /**
   * Creates a fuzzer.
   *
   * @param patience the time without progress after which a program counts as hanging
   * @param leastPatience the same for the smaller programs that are tried after a failure
   */
  Fuzzer(ContractSubject subject, ProgramHost host, Duration patience, Duration leastPatience) {
    this.subject = subject;
    this.host = host;
    this.patience = patience;
    this.leastPatience = leastPatience;
  }

  /** The body of a test. */
  interface TestBody {
    void run(Fuzzer fuzzer) throws Exception;
  }

  /**
   * Runs a test with the host that it declares.
   *
   * @throws org.opentest4j.TestAbortedException if the results of the backend are not real, or some
   *     ranks are in other JVMs
   */
  static void onHost(FuzzContract test, TestBody body) throws Exception {
    ContractSubject subject = test.subject();
    assumeThat(subject.provider().movesData()).as("the backend moves data").isTrue();
    assumeThat(subject.onlyRank()).as("the only rank in this JVM").isEmpty();
    Duration patience = Duration.ofSeconds(Long.getLong("tutti.fuzzPatience", 60));
    if (test.processes() == 0) {
      body.run(new Fuzzer(subject, new ThreadHost(subject), patience));
      return;
    }
    try (ProcessHost host = new ProcessHost(subject, test.getClass(), test.processes())) {
      body.run(new Fuzzer(subject, host, patience));
    }
  }

  /** Runs what the system properties request. */
  void run() throws Exception {
    String file = System.getProperty("tutti.fuzzProgram");
    if (file == null) {
      Duration time = Duration.ofSeconds(Long.getLong("tutti.fuzzSeconds", 3));
      LOG.log(System.Logger.Level.INFO, fuzz(Long.getLong("tutti.fuzzSeed", 1), time));
    } else {
      Program program = Program.parse(Files.readString(Path.of(file)));
      for (int i = 0; i < Integer.getInteger("tutti.fuzzRepeat", 1); i++) {
        Outcome _ = check(program);
      }
    }
  }

  /**
   * Runs all mixtures, or every third one in the fast tier, in the largest world that is small
   * enough for them. The name of the suite decides with which one the fast tier begins.
   */
  void mix(Class<?> suite) throws Exception {
    int size =
        Arrays.stream(subject.worldSizes())
            .filter(ranks -> ranks > 1 && ranks <= MOST_RANKS_OF_A_MIXTURE)
            .max()
            .orElseThrow(
                () -> new TestAbortedException("no world of more than one rank to test with"));
    List<Program> programs = new Mixtures(subject.capabilities(), subject.isOnHost(), size).all();
    int step = TestTier.isFast() ? 3 : 1;
    int first = Math.floorMod(suite.getName().hashCode(), step);
    for (int i = first; i < programs.size(); i += step) {
      Outcome _ = check(programs.get(i));
    }
  }

  /**
   * Runs the programs of as many seeds as fit into the given time, at least one, and returns a
   * description of what was done.
   */
  String fuzz(long firstSeed, Duration time) throws Exception {
    long start = System.nanoTime();
    long seed = firstSeed;
    long steps = 0;
    long elements = 0;
    do {
      ProgramGenerator generator =
          new ProgramGenerator(
              subject.capabilities(), subject.isOnHost(), subject.worldSizes(), seed++);
      Program program = generator.generate();
      Outcome outcome = check(program);
      steps += outcome.steps();
      elements += outcome.elements();
    } while (System.nanoTime() - start < time.toNanos());
    return "seeds %d to %d: %d programs, %d steps, %d elements, none failed"
        .formatted(firstSeed, seed - 1, seed - firstSeed, steps, elements);
  }

  /**
   * Runs a program.
   *
   * @throws AssertionError with the smallest program that fails in the same way, if the program
   *     fails
   */
  Outcome check(Program program) throws Exception {
    Outcome outcome = host.run(program, patience);
    if (!outcome.isFailure()) {
      return outcome;
    }
    LOG.log(
        System.Logger.Level.ERROR,
        "seed " + program.seed() + " failed: " + outcome.report() + "\n" + program);
    ProgramMinimizer minimizer =
        new ProgramMinimizer(host, program, outcome, leastPatience, ATTEMPTS, MINIMIZING);
    Program smallest = minimizer.minimize();
    Outcome again = host.run(smallest, patience);
    String first =
        smallest.equals(program)
            ? ""
            : "\nThe first failure, that of the whole program:\n"
                + outcome.report()
                + "\n"
                + program;
    throw new AssertionError(
        ("a random program failed (%s). Its seed is %s. The minimized program failed too (%s, and"
                    + " when run again %s); -Dtutti.fuzzProgram=FILE reruns it from a file:\n")
                .formatted(
                    outcome.ending(), program.seed(), minimizer.outcome().ending(), again.ending())
            + smallest
            + minimizer.outcome().report()
            + first);
  }
}
