package dev.tutti.interop.pytorch;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.peer.libtorch.PeerData;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A rank of Tutti: it joins by {@code env://}, runs the lines of a plan, and writes what they left.
 */
final class RankProgram {
  private static final Duration TIMEOUT = Duration.ofSeconds(40);

  private final Plan plan;
  private final PrintWriter out;
  private final boolean keepGoing;

  private RankProgram(Plan plan, PrintWriter out, boolean keepGoing) {
    this.plan = plan;
    this.out = out;
    this.keepGoing = keepGoing;
  }

  /**
   * Runs a rank from start to end.
   *
   * @param plan the file of the plan
   * @param directory the directory to which {@code rank-RANK.out} is written
   * @param keepGoing whether to run the lines after one that fails
   * @throws IOException if a file cannot be read or written
   */
  static void run(Path plan, Path directory, boolean keepGoing) throws IOException {
    GroupOptions options = GroupOptions.DEFAULT.withInitMethod("env://").withTimeout(TIMEOUT);
    long start = System.nanoTime();
    System.out.println("Java " + Runtime.version());
    try (ProcessGroup group = ProcessGroup.init(options)) {
      System.out.printf(
          "rank %d/%d joined after %d ms%n",
          group.rank(), group.size(), (System.nanoTime() - start) / 1_000_000);
      run(Plan.read(plan), directory, keepGoing, group);
    }
  }

  /**
   * Runs a rank that has joined.
   *
   * @param plan the plan to run
   * @param directory the directory to which {@code rank-RANK.out} is written
   * @param keepGoing whether to run the lines after one that fails
   * @param group the group of all ranks
   * @throws IOException if the file cannot be written
   */
  static void run(Plan plan, Path directory, boolean keepGoing, ProcessGroup group)
      throws IOException {
    Path file = directory.resolve("rank-" + group.rank() + ".out");
    try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file), true)) {
      out.println("# Tutti, Java " + Runtime.version());
      new RankProgram(plan, out, keepGoing).run(group);
      out.println(Results.DONE);
    }
  }

  private void run(ProcessGroup world) {
    List<ProcessGroup> groups = new ArrayList<>(List.of(world));
    List<List<Integer>> members = new ArrayList<>(List.of(world.globalRanks()));
    for (int i = 0; i < plan.entries().size(); i++) {
      Line line = plan.entries().get(i).line();
      if (!members.get(line.group()).contains(world.rank())) {
        out.println(Results.ok(i, Expected.NOTHING));
        continue;
      }
      try {
        byte[] left = new byte[0];
        if (line.op().equals("newgroup")) {
          members.add(line.ranks());
          groups.add(world.subgroup(line.ranks()).orElse(world));
        } else {
          left = new LineRunner(groups.get(line.group()), line).run();
        }
        out.println(Results.ok(i, PeerData.crc(left)));
      } catch (RuntimeException e) {
        out.println(Results.error(i, line + ": " + e));
        System.err.println("line " + i + ", " + line + ":");
        e.printStackTrace();
        if (!keepGoing) {
          throw e;
        }
      }
    }
  }
}
