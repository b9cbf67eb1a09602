package dev.tutti.peer.libtorch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bytedeco.pytorch.Store;

/**
 * Times a collective among ranks that all run libtorch's Gloo.
 *
 * <p>Options: those of {@link PeerArguments} for one rank of a group, or {@code --spawn N} to start
 * N ranks that meet in a temporary file; {@code --ops
 * allreduce,reduce,broadcast,allgather,barrier}, {@code --sizes} in bytes (for allgather, per
 * rank), {@code --dtype}, {@code --redop}, {@code --target-ms} of timed calls (800), {@code
 * --limit-s} for the whole run (540).
 *
 * <p>Each size starts with a check of a known result. Then the buffers, which are page-aligned and
 * used in place, are zeroed, and the collective is called on them for at least 500 ms, or 1.5 s at
 * the first size. From the last of these calls rank 0 picks the number of timed calls: enough for
 * the target time, at least 200 (30 from 8 MiB, 8 from 64 MiB), and at most 50 000. The calls run
 * back to back, and rank 0 takes one timestamp per call. The root of a broadcast or reduce rotates;
 * one sample is the time of a rotation divided by its number of calls. Tensors, lists and options
 * are created once. The binding's remaining cost in a timed call is two native calls and one small
 * object per operation.
 *
 * <p>Rank 0 prints one JSON object per line. {@code algbw_gbps} is bytes / median; {@code
 * busbw_gbps} scales it by 2(n−1)/n for allreduce, n−1 for allgather and 1 otherwise; {@code wrong}
 * counts wrong elements over all ranks.
 */
public final class LibtorchBench {
  private LibtorchBench() {}

  /**
   * Runs the benchmark as one rank, or as the parent of all ranks.
   *
   * @param args options
   * @throws IOException if the file in which the ranks meet cannot be created
   * @throws InterruptedException if interrupted while the ranks run
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    Flags flags = new Flags(args, PeerArguments.SWITCHES);
    int spawn = flags.number("spawn", 0);
    int limitSeconds = flags.number("limit-s", 540);
    if (spawn > 0) {
      System.exit(spawn(spawn, args, limitSeconds));
    }
    PeerArguments arguments = PeerArguments.from(flags);
    List<String> ops = flags.list("ops", "allreduce");
    long[] sizes = Flags.numbers(flags.text("sizes", "4,4096,1048576,67108864"));
    PeerType type = PeerType.of(flags.text("dtype", "float32"));
    String reduceOp = flags.text("redop", "sum");
    int targetMillis = flags.number("target-ms", 800);
    flags.rejectUnread();

    PeerOutput out = new PeerOutput();
    new PeerWatchdog()
        .guard(
            limitSeconds * 1000L, () -> out.line("ERROR 0 not done within " + limitSeconds + " s"));
    int status = PeerWatchdog.EXIT_ERROR;
    try {
      status = run(arguments, ops, sizes, type, reduceOp, targetMillis, out);
    } catch (RuntimeException | LinkageError e) {
      out.line("ERROR 0 " + PeerOutput.messageOf(e));
    }
    Runtime.getRuntime().halt(status);
  }

  private static int run(
      PeerArguments arguments,
      List<String> ops,
      long[] sizes,
      PeerType type,
      String reduceOp,
      int targetMillis,
      PeerOutput out) {
    LibtorchLoader.load();
    PeerStores.Opened opened = PeerStores.open(arguments);
    opened.awaitWorkers().run();
    Store store = PeerStores.wrap(opened.store(), arguments.prefixes());
    PeerGroup group =
        PeerGroup.create(
            store,
            PeerGroup.device(arguments),
            arguments.rank(),
            arguments.size(),
            arguments.timeoutMillis());
    CollectiveBench bench = new CollectiveBench(group, type, reduceOp, targetMillis);
    int status = 0;
    for (String op : ops) {
      for (long bytes : op.equals("barrier") ? new long[] {0} : sizes) {
        status |= bench.row(op, bytes, out) ? 0 : 1;
      }
    }
    group.gloo().barrier()._wait();
    return status;
  }

  private static int spawn(int size, String[] args, int limitSeconds)
      throws IOException, InterruptedException {
    Path directory = Files.createTempDirectory("libtorch-bench");
    Path file = directory.resolve("store");
    List<Process> ranks = new ArrayList<>();
    try {
      for (int rank = 0; rank < size; rank++) {
        List<String> options = new ArrayList<>(List.of(args));
        int spawnAt = options.indexOf("--spawn");
        options.subList(spawnAt, spawnAt + 2).clear();
        options.addAll(
            List.of(
                "--rank",
                "" + rank,
                "--size",
                "" + size,
                "--store",
                "file",
                "--file",
                file.toString()));
        ProcessBuilder builder =
            new ProcessBuilder(
                LibtorchClasspath.command(
                    LibtorchBench.class, LibtorchClasspath.defaultCacheDirectory(), options));
        builder.environment().putIfAbsent("OMP_NUM_THREADS", "1");
        ranks.add(builder.inheritIO().start());
      }
      int status = 0;
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitSeconds + 30L);
      for (Process rank : ranks) {
        boolean ended = rank.waitFor(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        status |= ended ? rank.exitValue() : PeerWatchdog.EXIT_STUCK;
      }
      return status;
    } finally {
      ranks.forEach(Process::destroyForcibly);
      Files.deleteIfExists(file);
      Files.deleteIfExists(directory);
    }
  }
}
