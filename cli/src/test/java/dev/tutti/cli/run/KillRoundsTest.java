package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.cli.process.Posix;
import dev.tutti.cli.run.KillRoundsRank.Phase;
import dev.tutti.shared.FreePorts;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStoreServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Kills or stops one of three ranks at random while they set up, split, pass messages, reduce or
 * close, with a store that rank 0 or this process serves. All other ranks must name the victim, and
 * nobody else, in time.
 *
 * <p>{@code -Dtutti.killRounds=200} sets the number of rounds. {@code -Dtutti.killSeed=…} sets the
 * seed of the first; each next round has the next seed. {@code -Dtutti.killSlack=1000} bounds how
 * many milliseconds late a rank may be; by default the bound only catches hangs.
 */
@Timeout(7200)
@Tag("full")
class KillRoundsTest {
  private static final int SIZE = 3;
  private static final int ROUNDS = Integer.getInteger("tutti.killRounds", 3);
  private static final long SLACK = Long.getLong("tutti.killSlack", 20_000);
  private static final String ONLY = System.getProperty("tutti.killOnly", "");
  private static final long DEADLINE = 8_000;
  private static final long ABOUT_A_SECOND = 1_500;

  /** How long ranks wait for the answer of a stopped rank: the default of TUTTI_ANSWER_TIMEOUT. */
  private static final long ANSWER = 5_000;

  /**
   * The default of TUTTI_CLOSE_TIMEOUT, and the time to find out why the close was not complete.
   */
  private static final long CLOSE = 5_000 + ANSWER + ABOUT_A_SECOND;

  private static final int SIGCONT = 18;
  private static final int SIGSTOP = 19;
  private static final Pattern FAILED = Pattern.compile("FAILED (-?\\d+) (\\d+) (\\d+) (.*)");
  private static final Pattern CLOSED = Pattern.compile("CLOSED (\\d+) (\\d+)");
  private static final Pattern FIRST = Pattern.compile("first failing rank (\\d+)");
  private static final Pattern RANK = Pattern.compile("\\branks? (\\d+)\\b");

  private enum Action {
    KILL,
    STOP,
    STOP_BRIEFLY
  }

  /** What happens in a round. */
  private record Plan(
      Phase phase, String store, boolean served, Action action, int victim, int pauseMillis) {
    static Plan random(SplittableRandom random) {
      return new Plan(
          any(random, Phase.values()),
          random.nextBoolean() ? "tcp" : "aeron",
          random.nextInt(3) == 0,
          any(random, Action.values()),
          random.nextBoolean() ? 0 : 1 + random.nextInt(SIZE - 1),
          random.nextInt(60));
    }

    private static <T> T any(SplittableRandom random, T[] values) {
      return values[random.nextInt(values.length)];
    }

    /** A joining rank is lost at once if there was a connection to it; otherwise it is late. */
    long promise(String line) {
      boolean isLate =
          phase == Phase.INIT
              && (store.equals("tcp")
                  || line.contains("did not register in the store")
                  || line.contains("no store server at"));
      return phase == Phase.CLOSE
          ? CLOSE
          : isLate || action == Action.STOP ? DEADLINE + ANSWER + ABOUT_A_SECOND : ABOUT_A_SECOND;
    }
  }

  @TempDir private Path directory;

  private final Map<Action, List<Long>> late = new EnumMap<>(Action.class);
  private final List<String> wrong = new ArrayList<>();

  @Test
  void allOthersNameWhoIsGoneAndNobodyElse() throws Exception {
    long seed = Long.getLong("tutti.killSeed", System.nanoTime());
    System.out.println("kill rounds: -Dtutti.killSeed=" + seed);
    for (int round = 0; round < ROUNDS; seed++) {
      Plan plan = Plan.random(new SplittableRandom(seed));
      if (plan.toString().matches(".*" + ONLY + ".*")) {
        int before = wrong.size();
        run(plan);
        round++;
        if (round % 25 == 0) {
          tellTimes(round);
        }
        for (String each : wrong.subList(before, wrong.size())) {
          System.out.println("seed " + seed + " " + plan + ": " + each);
        }
      }
    }
    tellTimes(ROUNDS);
    late.forEach((action, millis) -> System.out.println("kill times: " + action + " " + millis));
    assertThat(wrong).isEmpty();
  }

  private void tellTimes(int rounds) {
    late.forEach(
        (action, millis) ->
            System.out.println(
                "kill rounds: "
                    + rounds
                    + "; "
                    + action
                    + (action == Action.STOP ? ", after the deadline: " : ": ")
                    + summary(millis)));
  }

  private static String summary(List<Long> millis) {
    List<Long> sorted = millis.stream().sorted().toList();
    return "%d ranks, median %d ms, 99th percentile %d ms, worst %d ms"
        .formatted(
            sorted.size(),
            sorted.get(sorted.size() / 2),
            sorted.get((sorted.size() - 1) * 99 / 100),
            sorted.getLast());
  }

  private void run(Plan plan) throws Exception {
    List<CommandProcess> ranks = new ArrayList<>();
    int before = wrong.size();
    try (AutoCloseable server = plan.served ? serve(plan) : null) {
      int port =
          server instanceof TcpStoreServer tcp
              ? tcp.port()
              : server instanceof AeronStoreServer aeron ? aeron.port() : FreePorts.one();
      for (int rank = 0; rank < SIZE; rank++) {
        ranks.add(start(plan, port, rank));
      }
      for (CommandProcess rank : ranks) {
        rank.await(
            lines -> lines.contains("ON") || lines.stream().anyMatch(KillRoundsTest::isEnding));
        assertThat(rank.lines()).contains("ON");
      }
      LockSupport.parkNanos(Duration.ofMillis(plan.pauseMillis).toNanos());
      strike(plan, ranks);
    } catch (AssertionError e) {
      wrong.add(e.toString());
    } finally {
      if (wrong.size() > before) {
        tellEnds(plan, ranks);
      }
      ranks.forEach(CommandProcess::close);
      for (CommandProcess rank : ranks) {
        int _ = rank.exitCode();
      }
    }
  }

  /** Prints the last output of the ranks of a round that went wrong. */
  private static void tellEnds(Plan plan, List<CommandProcess> ranks) {
    System.out.println("ends of " + plan);
    for (int rank = 0; rank < ranks.size(); rank++) {
      List<String> lines =
          ranks.get(rank).lines().stream().filter(line -> !line.equals("ON")).toList();
      for (String line : lines.subList(Math.max(0, lines.size() - 8), lines.size())) {
        System.out.println("  rank " + rank + ": " + line);
      }
    }
  }

  private AutoCloseable serve(Plan plan) {
    return plan.store.equals("tcp")
        ? new TcpStoreServer(0)
        : new AeronStoreServer(
            AeronStoreOptions.of("127.0.0.1", 0).withToken(JobToken.NONE).withDirectory(directory));
  }

  private CommandProcess start(Plan plan, int port, int rank) throws Exception {
    Map<String, String> environment = new TreeMap<>();
    environment.put("TUTTI_STORE", plan.store);
    environment.put("TUTTI_BACKEND", "gloo");
    environment.put("TUTTI_AERON_DIR", directory.toString());
    environment.put("TUTTI_TOKEN", "");
    environment.put("TUTTI_TIMEOUT", "60s");
    environment.put("TORCHELASTIC_USE_AGENT_STORE", plan.served ? "True" : "False");
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    environment.put("WORLD_SIZE", Integer.toString(SIZE));
    environment.put("RANK", Integer.toString(rank));
    return CommandProcess.startProgram(
        environment, KillRoundsRank.class, plan.phase.toString(), Long.toString(DEADLINE));
  }

  private void strike(Plan plan, List<CommandProcess> ranks) throws Exception {
    CommandProcess victim = ranks.get(plan.victim);
    if (plan.action == Action.STOP_BRIEFLY) {
      Posix.kill(victim.pid(), SIGSTOP);
      LockSupport.parkNanos(Duration.ofMillis(500).toNanos());
      Posix.kill(victim.pid(), SIGCONT);
      assertGoesOn(plan, ranks);
    }
    long struck = System.currentTimeMillis();
    if (plan.action == Action.STOP) {
      Posix.kill(victim.pid(), SIGSTOP);
    } else {
      victim.close();
    }
    for (int rank = 0; rank < SIZE; rank++) {
      if (rank != plan.victim) {
        check(plan, rank, struck, ending(ranks.get(rank)));
      }
    }
    if (plan.action == Action.STOP) {
      Posix.kill(victim.pid(), SIGCONT);
      checkVictim(plan, ending(victim));
    }
  }

  /**
   * Waits until ranks that continue have done so three times; closing ranks may already be
   * finished.
   */
  private static void assertGoesOn(Plan plan, List<CommandProcess> ranks) throws Exception {
    if (plan.phase == Phase.CLOSE) {
      return;
    }
    for (CommandProcess rank : ranks) {
      int before = rank.lines().size();
      rank.await(
          lines -> lines.size() > before + 2 || lines.stream().anyMatch(KillRoundsTest::isEnding));
      assertThat(rank.lines()).noneMatch(KillRoundsTest::isEnding);
    }
  }

  private static boolean isEnding(String line) {
    return FAILED.matcher(line).matches()
        || CLOSED.matcher(line).matches()
        || line.startsWith("Exception in thread");
  }

  private static String ending(CommandProcess rank) throws InterruptedException {
    return rank.awaitLine(KillRoundsTest::isEnding);
  }

  private void check(Plan plan, int rank, long struck, String line) {
    Matcher closed = CLOSED.matcher(line);
    Matcher failed = FAILED.matcher(line);
    if (plan.phase == Phase.CLOSE && closed.matches()) {
      checkTime(plan, rank, struck, closed.group(1), closed.group(2), line);
    } else if (failed.matches()) {
      checkTime(plan, rank, struck, failed.group(2), failed.group(3), line);
      checkName(plan, rank, Integer.parseInt(failed.group(1)), failed.group(4), line);
    } else {
      wrong.add("rank " + rank + " ends otherwise: " + line);
    }
  }

  private void checkTime(
      Plan plan, int rank, long struck, String began, String ended, String line) {
    long took = Long.parseLong(ended) - Math.max(struck, Long.parseLong(began));
    if (plan.phase != Phase.CLOSE && plan.phase != Phase.INIT) {
      late.computeIfAbsent(plan.action, a -> new ArrayList<>())
          .add(plan.action == Action.STOP ? took - DEADLINE : took);
    }
    if (took > plan.promise(line) + SLACK) {
      wrong.add("rank " + rank + " took " + took + " ms: " + line);
    }
  }

  /** A failure to join has the name only in its text. */
  private void checkName(Plan plan, int rank, int blamed, String message, String line) {
    Matcher first = FIRST.matcher(message);
    if (blamed == -2 && first.find()) {
      blamed = Integer.parseInt(first.group(1));
    }
    Matcher names = RANK.matcher(message);
    boolean others = false;
    boolean right = false;
    while (names.find()) {
      int named = Integer.parseInt(names.group(1));
      right |= named == plan.victim;
      others |= named != plan.victim && named != rank;
    }
    if (blamed == -2 ? others || !right : blamed != plan.victim) {
      wrong.add("rank " + rank + " names another: " + line);
    }
  }

  /**
   * A rank that was given up reports that about itself, or closed. If it serves the store, the ends
   * of the others may be in the log before; then it says beside them that it was paused.
   */
  private void checkVictim(Plan plan, String line) {
    Matcher failed = FAILED.matcher(line);
    boolean closes = plan.phase == Phase.CLOSE && CLOSED.matcher(line).matches();
    boolean isNamed =
        failed.matches()
            && (Integer.parseInt(failed.group(1)) == plan.victim
                || (plan.victim == 0
                    && !plan.served
                    && line.contains("; rank 0 was paused until now")));
    if (!closes && !isNamed) {
      if (plan.phase != Phase.INIT) {
        wrong.add("the stopped rank " + plan.victim + " names another: " + line);
      }
    }
  }
}
