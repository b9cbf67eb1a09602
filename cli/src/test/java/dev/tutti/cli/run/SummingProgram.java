package dev.tutti.cli.run;

import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A rank that sums numbers, counts wrong elements, and prints SUM. The rank to be killed kills
 * itself; the others reduce until that fails, and print FAILED with the rank to blame.
 */
final class SummingProgram {
  static final int ELEMENTS = 1 << 20;

  private SummingProgram() {}

  /**
   * Runs the rank.
   *
   * @param args the URL of the store, or {@code env://}, without the rank and the number of ranks;
   *     the rank to be killed, -1 for none
   */
  public static void main(String[] args) throws Exception {
    int victim = Integer.parseInt(args[1]);
    try (ProcessGroup group = join(args[0])) {
      int[] values = new int[ELEMENTS];
      for (int i = 0; i < ELEMENTS; i++) {
        values[i] = (group.rank() + 1) * (i + 1);
      }
      Tensor tensor = Tensor.of(values);
      group.allReduce(tensor);
      int[] sums = tensor.toIntArray();
      int ofRanks = group.size() * (group.size() + 1) / 2;
      int wrong = 0;
      for (int i = 0; i < ELEMENTS; i++) {
        wrong += sums[i] == ofRanks * (i + 1) ? 0 : 1;
      }
      System.out.println("SUM of %d, %d wrong".formatted(group.size(), wrong));
      group.barrier();
      System.out.println("RECEIVED " + received());
      if (victim >= 0) {
        fail(group, victim, tensor);
      }
    }
  }

  private static ProcessGroup join(String store) {
    if (store.equals("env://")) {
      return ProcessGroup.init();
    }
    String rank = System.getenv("RANK");
    String size = System.getenv("WORLD_SIZE");
    return ProcessGroup.init(
        GroupOptions.DEFAULT.withInitMethod(
            "%s?rank=%s&world_size=%s".formatted(store, rank, size)));
  }

  private static void fail(ProcessGroup group, int victim, Tensor tensor) throws Exception {
    try {
      for (int step = 0; ; step++) {
        if (step == 3 && group.rank() == victim) {
          String own = Long.toString(ProcessHandle.current().pid());
          new ProcessBuilder("kill", "-KILL", own).start().waitFor();
        }
        group.allReduce(tensor);
      }
    } catch (CollectiveException e) {
      System.out.printf("FAILED %d %s%n", e.failedRank().orElse(-1), e.getMessage());
    }
  }

  /** Returns how many bytes this host has received from others. */
  private static long received() throws Exception {
    return Files.readString(Path.of("/proc/net/dev"))
        .lines()
        .map(String::strip)
        .filter(line -> line.startsWith(NamespaceHosts.INTERFACE + ":"))
        .mapToLong(line -> Long.parseLong(line.split("[: ]+")[1]))
        .findFirst()
        .orElseThrow();
  }
}
