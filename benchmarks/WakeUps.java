import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Counts how often the threads of a rank wake up while its group is idle: {@code WakeUps SECONDS}.
 */
public class WakeUps {
  private static final int CALLS = 3000;
  private static final long SETTLE_MILLIS = 3000;
  private static final String SWITCHES = "voluntary_ctxt_switches:";

  public static void main(String[] args) throws Exception {
    long seconds = Long.parseLong(args[0]);
    try (ProcessGroup group = ProcessGroup.init()) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, 1);
      for (int i = 0; i < CALLS; i++) {
        group.allReduce(tensor, ReduceOp.SUM);
      }
      Thread.sleep(SETTLE_MILLIS);
      Map<String, Long> before = count();
      Thread.sleep(seconds * 1000);
      count()
          .forEach(
              (thread, after) -> {
                long wakeUps = after - before.getOrDefault(thread, 0L);
                if (wakeUps > 0) {
                  System.out.println(wakeUps + " " + thread);
                }
              });
      group.barrier();
    }
  }

  /** Returns how often each thread of this process has slept so far, by its name and number. */
  private static Map<String, Long> count() throws IOException {
    Map<String, Long> counts = new TreeMap<>();
    try (Stream<Path> threads = Files.list(Path.of("/proc/self/task"))) {
      for (Path thread : threads.toList()) {
        List<String> status = Files.readAllLines(thread.resolve("status"));
        String name = status.getFirst().replaceFirst("Name:\\s*", "");
        for (String line : status) {
          if (line.startsWith(SWITCHES)) {
            long sleeps = Long.parseLong(line.substring(SWITCHES.length()).strip());
            counts.put(name + " " + thread.getFileName(), sleeps);
          }
        }
      }
    }
    return counts;
  }
}
