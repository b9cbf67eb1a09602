package dev.tutti.interop.pytorch;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The program behind {@code benchmarks/pytorch-interop/run}.
 *
 * <ul>
 *   <li>{@code plan SIZE FILE} writes the plan of a world;
 *   <li>{@code rank PLAN DIRECTORY [--keep-going]} runs a rank of it, configured by the variables
 *       of {@code env://};
 *   <li>{@code measure PLAN DIRECTORY FILE} compares a world of one kind with its plan, and writes
 *       the plan for worlds of two kinds;
 *   <li>{@code check PLAN DIRECTORY} compares a world with its plan.
 * </ul>
 *
 * <p>The last two print a one-line summary, then what is wrong, and exit with 1 if anything is.
 */
public final class Interop {
  private static final int SHOWN = 20;

  private Interop() {}

  /**
   * Runs one command.
   *
   * @param args the command and its arguments
   * @throws IOException if a file cannot be read or written
   */
  public static void main(String[] args) throws IOException {
    switch (args[0]) {
      case "plan" -> {
        int size = Integer.parseInt(args[1]);
        Plan.of(Lines.of(size), size).write(Path.of(args[2]));
      }
      case "rank" ->
          RankProgram.run(
              Path.of(args[1]),
              Path.of(args[2]),
              args.length > 3 && args[3].equals("--keep-going"));
      case "measure" -> {
        Plan all = Plan.read(Path.of(args[1]));
        Check check = new Check(all, Path.of(args[2]));
        List<String> refused = new ArrayList<>();
        Plan measured = check.measure(refused);
        if (!measured.entries().isEmpty()) {
          measured.write(Path.of(args[3]));
        }
        finish(check, all, refused);
      }
      case "check" -> {
        Plan plan = Plan.read(Path.of(args[1]));
        Check check = new Check(plan, Path.of(args[2]));
        check.run();
        finish(check, plan, List.of());
      }
      default -> throw new IllegalArgumentException("no such command: " + args[0]);
    }
  }

  private static void finish(Check check, Plan plan, List<String> refused) {
    List<String> wrong = check.wrong();
    System.out.printf(
        "%d lines, %d results compared, %d wrong%s%n",
        plan.entries().size(),
        check.compared(),
        wrong.size(),
        refused.isEmpty() ? "" : ", " + refused.size() + " refused by all ranks");
    refused.forEach(message -> System.out.println("refused: " + message));
    wrong.stream().limit(SHOWN).forEach(message -> System.out.println("wrong: " + message));
    if (wrong.size() > SHOWN) {
      System.out.println("wrong: and " + (wrong.size() - SHOWN) + " more");
    }
    for (int rank = 0; rank < plan.size(); rank++) {
      System.out.println("rank " + rank + ": " + check.about(rank));
    }
    if (!wrong.isEmpty()) {
      System.exit(1);
    }
  }
}
