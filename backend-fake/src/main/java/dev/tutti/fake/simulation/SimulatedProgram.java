package dev.tutti.fake.simulation;

import dev.tutti.Store;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A program that runs as one process of a simulation: a seed decides the order of its threads, how
 * long messages to its store take, and random numbers, and time passes only when all threads wait.
 *
 * <p>Where {@link SimulatedWorld} gives each rank a process that can fail, ranks here are threads
 * of one process, as those of a {@link dev.tutti.fake.ThreadedWorld} with this {@link #time()}. A
 * wait in real time fails the run.
 */
public final class SimulatedProgram {
  static final Duration LIMIT = Duration.ofHours(24);

  private final SimulatedProcess process;
  private final SimulatedServer server;

  private SimulatedProgram(SimulatedScheduler scheduler, SplittableRandom random) {
    this.process = new SimulatedProcess(scheduler, "process");
    this.server = new SimulatedServer(scheduler, random);
  }

  /** What the main thread runs. */
  @FunctionalInterface
  public interface Body {
    /**
     * Runs on the main thread of the simulated process.
     *
     * @param program the program that runs
     * @throws Throwable what {@link Outcome#failure} then is
     */
    void run(SimulatedProgram program) throws Throwable;
  }

  /**
   * What a run leaves.
   *
   * @param failure what the body threw; null if nothing
   * @param steps the number of steps that threads made
   * @param hash the hash of all steps, which is the same whenever the same run is repeated
   */
  public record Outcome(@Nullable Throwable failure, long steps, long hash) {}

  /** Returns why this JVM cannot simulate: it was started without an option; empty if it can. */
  public static Optional<String> unusableReason() {
    return SimulatedScheduler.unusableReason();
  }

  /**
   * Runs a body as the main thread of a simulated process, on the calling thread, until all threads
   * have ended.
   *
   * @param seed what decides everything
   * @param body the code of the main thread
   * @throws IllegalStateException if this JVM cannot simulate, or if threads wait for ever, outlive
   *     a simulated day, wait in real time, or throw what nobody catches; suppresses what the body
   *     threw before
   */
  public static Outcome run(long seed, Body body) {
    SplittableRandom random = new SplittableRandom(seed);
    SimulatedScheduler scheduler = new SimulatedScheduler(random.nextLong());
    SimulatedProgram program = new SimulatedProgram(scheduler, random.split());
    AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
    Thread _ =
        program.process.start(
            "main",
            () -> {
              try {
                body.run(program);
              } catch (Throwable e) {
                thrown.set(e);
              }
            });
    try {
      scheduler.run(LIMIT.toNanos());
    } catch (IllegalStateException e) {
      Throwable first = thrown.get();
      if (first != null) {
        e.addSuppressed(first);
      }
      throw e;
    }
    return new Outcome(thrown.get(), scheduler.trace().count(), scheduler.trace().hash());
  }

  /** Returns the time of the simulation. */
  public Time time() {
    return process.time();
  }

  /**
   * Returns a new client of the simulation's store.
   *
   * @param timeout the deadline of its calls, in simulated time
   */
  public Store store(Duration timeout) {
    return new SimulatedStore(server, process, timeout);
  }
}
