package dev.tutti.checkpoint;

import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.optimizer.AdamW;
import dev.tutti.gradients.optimizer.ShardedOptimizer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A rank of {@link KilledElasticTest}: it does steps until a file is there, and prints the number
 * of each of the first of a generation; in the end the number of all, and the state. Arguments: the
 * file, {@code init} or {@code join}, and, for state of which each rank has a part, the folder of
 * checkpoints.
 */
final class ElasticMain {
  static final int EVERY = 3;

  /** How many steps of a generation it prints. */
  private static final int PRINTED = 10;

  private final Path stop;
  private final Sums sums = new Sums();
  private @Nullable ElasticGeneration last;
  private int committed;
  private String end = "";

  private ElasticMain(Path stop) {
    this.stop = stop;
  }

  public static void main(String[] args) throws Exception {
    ElasticMain main = new ElasticMain(Path.of(args[0]));
    ProcessGroup group =
        args[1].equals("join")
            ? ProcessGroup.join(GroupOptions.DEFAULT)
            : ProcessGroup.init(GroupOptions.DEFAULT);
    if (args.length == 2) {
      Elastic.run(group, ElasticOptions.DEFAULT, main::copies);
    } else {
      ElasticOptions options = ElasticOptions.DEFAULT.withCheckpoints(Path.of(args[2]), EVERY);
      Elastic.run(group, options, main::parts);
    }
    System.out.println("END " + main.end);
  }

  private void copies(ElasticGeneration generation) {
    long step = generation.restore(sums.contents());
    while (goesOn(generation.group())) {
      sums.step(generation.group(), step++);
      commit(generation, step);
    }
    end = step + " " + sums;
  }

  private void parts(ElasticGeneration generation) {
    List<Tensor> parameters = parameters();
    try (ShardedOptimizer optimizer = optimizer(generation.group(), parameters)) {
      Contents contents =
          sums.contents()
              .copies("model", names(), parameters)
              .parts("optimizer", optimizer.state(names()));
      long step = generation.restore(contents);
      while (goesOn(generation.group())) {
        sums.step(generation.group(), step);
        step(optimizer, step++);
        commit(generation, step);
      }
      end = step + " " + sums + text(parameters);
    }
  }

  private void commit(ElasticGeneration generation, long step) {
    if (generation != last) {
      last = generation;
      committed = 0;
    }
    // All that a process prints fits into a pipe that nobody reads for a while.
    if (committed++ < PRINTED) {
      System.out.println("RANKS " + generation.group().size() + " STEP " + step);
    }
    generation.commit(step);
  }

  /** Returns, on all ranks alike, whether there is nothing yet that stops them. */
  private boolean goesOn(ProcessGroup group) {
    Tensor flag = Tensor.of(group.rank() == 0 && Files.exists(stop) ? 1L : 0L);
    group.broadcast(flag, 0);
    return flag.getLong(0) == 0;
  }

  static List<Tensor> parameters() {
    return List.of(Tensor.allocate(DType.FLOAT32, 7, 3), Tensor.allocate(DType.FLOAT32, 5));
  }

  private static List<String> names() {
    return List.of("weight", "bias");
  }

  static ShardedOptimizer optimizer(ProcessGroup group, List<Tensor> parameters) {
    return new ShardedOptimizer(group, parameters, ReducerOptions.DEFAULT, new AdamW(0.01));
  }

  /** Does a step whose mean gradients are exact, whatever the number of ranks. */
  static void step(ShardedOptimizer optimizer, long step) {
    for (int i = 1; i >= 0; i--) {
      optimizer.reducer().gradient(i).fill((double) (step % 7 - 2 + i));
      optimizer.reducer().ready(i);
    }
    optimizer.step();
  }

  static String text(List<Tensor> parameters) {
    return parameters.get(0).getFloat(20) + " " + parameters.get(1).getFloat(4);
  }
}
