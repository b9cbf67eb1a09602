package dev.tutti.contracts.fuzz;

import dev.tutti.Store;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.fake.simulation.SimulatedHost;
import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

/**
 * Runs random programs in simulations. A seed decides the program, the order of all threads, what
 * the network does and what goes wrong, so a program that fails does so each time. Each rank has a
 * host of its own; the store is a {@link TcpStore} on another one.
 *
 * <p>The backend of {@link ContractSubject#provider()} must use the channels of {@link
 * SimulatedHost#current()}, if any; that method is called by threads of the simulation.
 */
public final class SimulatedPrograms {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  /** How long a call at a store that a reset cut off may go on after the close of its group. */
  private static final Duration LAST_CALL = Duration.ofSeconds(20);

  private static final Duration CALL = PATIENCE.multipliedBy(4);
  private static final int PORT = 29500;
  private static final int PROGRAMS_PER_COLLECTION = 16;
  private static final int MOST_FAULTS = 3;
  private static final int WITHIN_MILLIS = 200;
  private static final int SHORT_MILLIS = 2000;

  private final ContractSubject subject;
  private final Trouble trouble;

  /** What goes wrong while a program runs. */
  public enum Trouble {
    /** Nothing: messages take different times only. */
    NONE,
    /** Hosts stand still or are cut off from each other, for so short a time that none gives up. */
    DELAYS,
    /** Connections break, so that the program need not end well. */
    RESETS
  }

  /**
   * Prepares to run programs.
   *
   * @param subject the backend under test
   * @param trouble what goes wrong
   */
  public SimulatedPrograms(ContractSubject subject, Trouble trouble) {
    this.subject = subject;
    this.trouble = trouble;
  }

  /**
   * Runs the program of a seed, twice.
   *
   * @throws AssertionError if a result is wrong, if a rank hangs, fails for no reason or leaves a
   *     channel open, or if the second run takes other steps than the first
   */
  public void run(long seed) {
    if (seed % PROGRAMS_PER_COLLECTION == 0) {
      // Tensors of programs that failed keep their memory until the collector finds them; a program
      // that finds none would wait in real time.
      System.gc();
    }
    Program program =
        new ProgramGenerator(subject.capabilities(), true, subject.worldSizes(), seed).generate();
    Run first = once(program);
    boolean mayFail = trouble == Trouble.RESETS && !first.outcome.report().contains("Assertion");
    if (first.outcome.ending() == Outcome.Ending.HUNG || (first.outcome.isFailure() && !mayFail)) {
      throw new AssertionError(
          "seed %d with %s: %s%n%s".formatted(seed, trouble, first.outcome, program));
    }
    Run second = once(program);
    if (second.hash != first.hash) {
      throw new AssertionError(
          "seed %d with %s took other steps when run again".formatted(seed, trouble));
    }
  }

  private record Run(Outcome outcome, long hash) {}

  private Run once(Program program) {
    AtomicReference<Outcome> outcome = new AtomicReference<>();
    SimulatedProgram.Outcome run =
        SimulatedProgram.run(program.seed(), _ -> outcome.set(simulate(program)));
    if (run.failure() != null) {
      throw new AssertionError("seed " + program.seed() + ": " + run.failure(), run.failure());
    }
    return new Run(outcome.get(), run.hash());
  }

  private Outcome simulate(Program program) throws InterruptedException {
    SimulatedHost here = SimulatedHost.current();
    List<SimulatedHost> hosts =
        IntStream.range(0, program.size()).mapToObj(rank -> here.newHost("rank " + rank)).toList();
    ProgramRunner runner =
        new ProgramRunner(
            subject,
            program,
            IntStream.range(0, program.size()).boxed().toList(),
            rank -> hosts.get(rank).time(),
            here.time());
    List<Store> stores = new ArrayList<>();
    stores.add(new TcpStore(options(here, here).withServer(true)));
    begin(hosts, new SplittableRandom(program.seed()));
    Outcome outcome;
    try {
      outcome = runner.run(rank -> open(here, hosts.get(rank), stores), PATIENCE);
    } finally {
      stores.reversed().forEach(Store::close);
    }
    SimulatedWorld.sleep(LAST_CALL);
    for (SimulatedHost host : hosts) {
      if (host.openChannels() > 0) {
        throw new AssertionError(
            "%d channels of %s are left".formatted(host.openChannels(), host.address()));
      }
    }
    return outcome;
  }

  private static Store open(SimulatedHost server, SimulatedHost host, List<Store> stores) {
    Store store = new TcpStore(options(server, host));
    synchronized (stores) {
      stores.add(store);
    }
    return store;
  }

  private static TcpStoreOptions options(SimulatedHost server, SimulatedHost host) {
    return TcpStoreOptions.of(server.address().getHostAddress(), PORT)
        .withTimeout(CALL)
        .withToken(JobToken.NONE)
        .withTls(null)
        .withTime(host.time())
        .withChannels(host.channels());
  }

  private void begin(List<SimulatedHost> hosts, SplittableRandom random) {
    if (trouble == Trouble.NONE || hosts.size() < 2) {
      return;
    }
    Time time = SimulatedHost.current().time();
    for (int i = random.nextInt(MOST_FAULTS + 1); i > 0; i--) {
      long at = millis(random.nextInt(WITHIN_MILLIS));
      int first = random.nextInt(hosts.size());
      int second = (first + 1 + random.nextInt(hosts.size() - 1)) % hosts.size();
      long length = millis(random.nextInt(SHORT_MILLIS));
      boolean pauses = random.nextBoolean();
      Thread _ =
          time.start(
              "trouble",
              () -> {
                time.park(hosts, at);
                if (trouble == Trouble.RESETS) {
                  hosts.get(first).resetConnections();
                } else if (pauses) {
                  hosts.get(first).pause(Duration.ofNanos(length));
                } else {
                  hosts.get(first).partition(hosts.get(second), true);
                  time.park(hosts, length);
                  hosts.get(first).partition(hosts.get(second), false);
                }
              });
    }
  }

  private static long millis(int count) {
    return Duration.ofMillis(count).toNanos();
  }
}
