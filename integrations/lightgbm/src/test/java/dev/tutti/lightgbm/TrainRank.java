package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.ProcessGroup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Trains one rank over Tutti or over LightGBM's own sockets, and writes the model to a file.
 *
 * <p>Arguments: {@code tutti} or {@code sockets}; the task; the number of rows of all ranks; the
 * number of rounds; the file, or "-"; and optionally the round in which this rank kills itself, or
 * the first port of the sockets.
 */
public final class TrainRank {
  /** How long a rank listens for those that start later. */
  private static final int MINUTES = 5;

  private TrainRank() {}

  /** Runs one rank, as given by {@code RANK} and {@code WORLD_SIZE}. */
  public static void main(String[] args) throws Exception {
    int rank = Integer.parseInt(System.getenv("RANK"));
    int size = Integer.parseInt(System.getenv("WORLD_SIZE"));
    int last = args.length > 5 ? Integer.parseInt(args[5]) : -1;
    if (args[0].equals("sockets")) {
      LightGbmLibrary.load();
      String machines =
          IntStream.range(0, size)
              .mapToObj(each -> "127.0.0.1:" + (last + each))
              .collect(Collectors.joining(","));
      require(lightgbmlib.LGBM_NetworkInit(machines, last + rank, MINUTES, size));
      train(call -> require(call.getAsInt()), args, rank, size, -1);
      require(lightgbmlib.LGBM_NetworkFree());
      return;
    }
    try (ProcessGroup group = ProcessGroup.init();
        LightGbmNetwork network = LightGbmNetwork.open(group)) {
      train(network::call, args, rank, size, last);
    }
  }

  private static void require(int result) {
    if (result != 0) {
      throw new IllegalStateException(lightgbmlib.LGBM_GetLastError());
    }
  }

  private static void train(
      Consumer<IntSupplier> network, String[] args, int rank, int size, int killedAt)
      throws Exception {
    int rounds = Integer.parseInt(args[3]);
    try (Training training =
        new Training(network, args[1], Integer.parseInt(args[2]), rank, size)) {
      long start = System.nanoTime();
      for (int round = 0; round < rounds; round++) {
        if (round == killedAt) {
          Runtime.getRuntime().halt(137);
        }
        training.round();
      }
      System.out.println(
          "%s %s rank %d of %d: %d rounds in %d ms"
              .formatted(
                  args[0],
                  args[1],
                  rank,
                  size,
                  rounds,
                  TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start)));
      if (!args[4].equals("-")) {
        Files.writeString(Path.of(args[4]), training.model());
      }
    }
  }
}
