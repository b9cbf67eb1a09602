package dev.tutti.testing.fuzz;

import dev.tutti.testing.ContractSubject;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * Runs random programs for a time and reports the first that fails, with its seed and made smaller.
 *
 * <p>System properties: {@code tutti.fuzzSeconds} for how long (3), {@code tutti.fuzzSeed} from
 * which seed on (1), {@code tutti.fuzzPatience} after how many seconds without progress a program
 * hangs (60), {@code tutti.fuzzProgram} the file of a program to run instead, {@code
 * tutti.fuzzRepeat} how often.
 */
final class Fuzzer {
  private static final System.Logger LOG = System.getLogger(Fuzzer.class.getName());
  private static final Duration LEAST_PATIENCE = Duration.ofSeconds(5);
  private static final Duration MINIMIZING = Duration.ofMinutes(3);
  private static final int ATTEMPTS = 3;

  private final ContractSubject subject;
  private final ProgramHost host;
  private final Duration patience;

  Fuzzer(ContractSubject subject, ProgramHost host, Duration patience) {
    this.subject = subject;
    this.host = host;
    this.patience = patience;
  }

  /** Does what the system properties say. */
  static void run(String name, ContractSubject subject, ProgramHost host) throws Exception {
    Fuzzer fuzzer =
        new Fuzzer(subject, host, Duration.ofSeconds(Long.getLong("tutti.fuzzPatience", 60)));
    String file = System.getProperty("tutti.fuzzProgram");
    if (file == null) {
      Duration time = Duration.ofSeconds(Long.getLong("tutti.fuzzSeconds", 3));
      LOG.log(
          System.Logger.Level.INFO,
          name + ": " + fuzzer.fuzz(Long.getLong("tutti.fuzzSeed", 1), time));
    } else {
      Program program = Program.parse(Files.readString(Path.of(file)));
      for (int i = 0; i < Integer.getInteger("tutti.fuzzRepeat", 1); i++) {
        fuzzer.check(program);
      }
    }
  }

  /** Runs the programs of as many seeds as fit in a time, at least one; returns what was done. */
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
   * @throws AssertionError with the smallest program that fails like it, if it fails
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
        new ProgramMinimizer(host, program, outcome, LEAST_PATIENCE, ATTEMPTS, MINIMIZING);
    Program smallest = minimizer.minimize();
    throw new AssertionError(
        "a random program failed ("
            + outcome.kind()
            + "). Its seed is "
            + program.seed()
            + "; made smaller, it still fails ("
            + minimizer.outcome().kind()
            + "); -Dtutti.fuzzProgram=FILE runs it again from a file:\n"
            + smallest
            + minimizer.outcome().report()
            + (smallest.equals(program) ? "" : "\nThe first failure, of the whole program:\n")
            + (smallest.equals(program) ? "" : outcome.report() + "\n" + program));
  }
}
