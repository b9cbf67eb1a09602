package dev.tutti.cli.bench;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of a simulation. */
final class SimulateOptions {
  /** The names that can be combined with a simulation. */
  static final List<String> COMBINED =
      List.of(
          "--simulate",
          "--network",
          "--ranks",
          "--gradients",
          "--bucket",
          "--compute",
          "--store",
          "--backend",
          "--min-bytes",
          "--max-bytes",
          "--step-factor",
          "--dtype",
          "--redop",
          "--graph",
          "--format",
          "--debug");

  /** The names that mean nothing without a simulation. */
  static final List<String> ONLY =
      List.of("--network", "--ranks", "--gradients", "--bucket", "--compute", "--store");

  @Option(
      names = "--simulate",
      description =
          "Measure nothing, but compute times from the steps of the algorithms that the backend"
              + " would choose. Needs --ranks and --network.")
  boolean simulate;

  @Option(
      names = "--network",
      paramLabel = "FILE",
      description = "The hosts of the simulation, as tutti calibrate writes them.")
  @Nullable Path network;

  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "N",
      description = "Numbers of ranks of the simulation, each a multiple of those on a host.")
  List<Integer> ranks = new ArrayList<>();

  @Option(
      names = "--gradients",
      paramLabel = "BYTES",
      description = "Simulate a step of data-parallel training with gradients of this size.",
      converter = BenchOptions.BytesConverter.class)
  @Nullable Long gradients;

  @Option(
      names = "--bucket",
      paramLabel = "BYTES",
      description = "Size of the buckets of gradients. Default: 25M.",
      converter = BenchOptions.BytesConverter.class)
  long bucket = 25L << 20;

  @Option(
      names = "--compute",
      paramLabel = "TIME",
      description = "Time of forward and backward. Default: 100ms.")
  Duration compute = Duration.ofMillis(100);

  @Option(
      names = "--store",
      description =
          "Simulate what one server of a store does while ranks join, fail, wait and call.")
  boolean store;

  /** Returns the file of the network. */
  Path requireNetwork() {
    Path file = network;
    if (file == null || ranks.isEmpty()) {
      throw new IllegalArgumentException("--simulate needs --ranks and --network");
    }
    return file;
  }
}
