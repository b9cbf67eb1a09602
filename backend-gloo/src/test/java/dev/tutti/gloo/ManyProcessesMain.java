package dev.tutti.gloo;

import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.store.HashStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * A rank of {@link ManyProcessesTest}. It prints {@code UP}, joins its group when it reads a line,
 * prints {@code MET}, reduces, prints {@code HAS} with its number of sockets and its private bytes
 * of memory, and leaves when it reads another line.
 */
final class ManyProcessesMain {
  private static final int COUNT = 100_000;

  private ManyProcessesMain() {}

  public static void main(String[] args) throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    // What a process loads and compiles for its first group is irrelevant to the rendezvous.
    GroupOptions alone = GroupOptions.DEFAULT.withStore(new HashStore()).withRank(0).withSize(1);
    try (ProcessGroup group = ProcessGroup.init(alone)) {
      group.barrier();
    }
    System.out.println("UP");
    in.readLine();
    try (ProcessGroup group = ProcessGroup.init(GroupOptions.DEFAULT)) {
      System.out.println("MET");
      Tensor tensor = Tensor.allocate(DType.FLOAT32, COUNT);
      tensor.fill(1);
      group.allReduce(tensor);
      Tensor one = Tensor.of(group.rank());
      group.broadcast(one, group.size() - 1);
      group.barrier();
      boolean right =
          tensor.getDouble(COUNT - 1) == group.size() && one.getDouble(0) == group.size() - 1;
      System.out.println(right ? "HAS " + sockets() + " " + ownMemory() : "WRONG " + tensor);
      in.readLine();
    }
  }

  private static long sockets() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.filter(ManyProcessesMain::isSocket).count();
    }
  }

  private static boolean isSocket(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().startsWith("socket:");
    } catch (IOException e) {
      return false;
    }
  }

  private static long ownMemory() throws IOException {
    long kilobytes = 0;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps_rollup"))) {
      if (line.startsWith("Private_Dirty:")) {
        kilobytes += Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    return kilobytes * 1024;
  }
}
