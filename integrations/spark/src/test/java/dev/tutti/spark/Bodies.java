package dev.tutti.spark;

import dev.tutti.Codec;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;

/** The code that ranks run in several tests. */
final class Bodies {
  /** Threads that exist once per process, not per group. */
  private static final Set<String> OF_PROCESS = Set.of("tutti-wd");

  private Bodies() {}

  static JavaRDD<Integer> partitions(JavaSparkContext spark, int count) {
    List<Integer> numbers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      numbers.add(i);
    }
    return spark.parallelize(numbers, count);
  }

  /** Runs the collectives of a rank and returns their results on one line. */
  static Iterator<String> collectives(ProcessGroup group, Iterator<Integer> rows) {
    int rank = group.rank();
    Tensor large = Tensor.wrap(new float[100_003]);
    for (int i = 0; i < large.numel(); i++) {
      large.setDouble(i, (rank + 1) * (i % 100));
    }
    group.allReduce(large);
    int wrong = 0;
    int factor = group.size() * (group.size() + 1) / 2;
    for (int i = 0; i < large.numel(); i++) {
      if (large.getDouble(i) != factor * (i % 100)) {
        wrong++;
      }
    }
    Tensor root = rank == 1 ? Tensor.of(3.5, -1) : Tensor.of(0., 0.);
    group.broadcast(root, 1);
    List<String> names = group.allGatherObject("r" + rank, Codec.STRING);
    String word = group.broadcastObject(rank == 2 ? "from two" : "", 2, Codec.STRING);
    return List.of(
            "rank %d/%d row %d wrong %d root %.1f %.1f names %s word %s"
                .formatted(
                    rank,
                    group.size(),
                    rows.next(),
                    wrong,
                    root.getDouble(0),
                    root.getDouble(1),
                    names,
                    word))
        .iterator();
  }

  static List<String> expectedOfFour() {
    List<String> lines = new ArrayList<>();
    for (int rank = 0; rank < 4; rank++) {
      lines.add(
          "rank %d/4 row %d wrong 0 root 3.5 -1.0 names [r0, r1, r2, r3] word from two"
              .formatted(rank, rank));
    }
    return lines;
  }

  /**
   * Reduces until the group fails in the first attempt of a stage, and 100 times in the second.
   *
   * @param folderName the folder in which a rank writes its process id once it is in its steps, and
   *     what it threw
   * @return rank, total and process
   */
  static Iterator<long[]> steps(ProcessGroup group, String folderName) throws IOException {
    Path folder = Path.of(folderName);
    int attempt = BarrierTaskContext.get().stageAttemptNumber();
    Tensor sum = Tensor.allocate(DType.INT64, 1000);
    long total = 0;
    try {
      for (int step = 0; attempt == 0 || step < 100; step++) {
        sum.fillLong(group.rank() + step);
        group.allReduce(sum);
        total += sum.getLong(999);
        if (attempt == 0 && step == 10) {
          publish(folder.resolve("pid-" + group.rank()), "" + ProcessHandle.current().pid());
        }
      }
    } catch (RuntimeException e) {
      publish(folder.resolve("failure-" + group.rank()), String.valueOf(e.getMessage()));
      throw e;
    }
    return List.of(new long[] {group.rank(), total, ProcessHandle.current().pid()}).iterator();
  }

  private static void publish(Path file, String text) throws IOException {
    Path part = file.resolveSibling(file.getFileName() + ".part");
    Files.writeString(part, text);
    Files.move(part, file);
  }

  /** Returns the names of Tutti's threads in this process that belong to a group. */
  static List<String> threadsOfGroups() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("tutti-") && !OF_PROCESS.contains(name))
        .sorted()
        .toList();
  }
}
