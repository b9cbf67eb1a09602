package dev.tutti.cli.bench;

import com.sun.management.OperatingSystemMXBean;
import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Setting;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.TypeConversionException;

/** The options that select what is measured; the command passes them on to its ranks. */
final class BenchOptions {
  /** The backend to measure if none is named. */
  static final String DEFAULT_BACKEND = "gloo";

  @Parameters(
      arity = "0..*",
      paramLabel = "OPS",
      completionCandidates = BenchChoices.Operations.class,
      description = {
        "What to measure: allReduce broadcast reduce allGather gather scatter reduceScatter"
            + " allToAll sendRecv barrier, or 'all' of these that the backend supports. Default:"
            + " allReduce."
      })
  List<String> ops = new ArrayList<>(List.of(BenchOp.ALL_REDUCE.label()));

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      completionCandidates = BenchChoices.Backends.class,
      description = "Backend to measure. Default: " + DEFAULT_BACKEND + ".")
  String backend = DEFAULT_BACKEND;

  @Option(
      names = "--min-bytes",
      paramLabel = "BYTES",
      description = "Smallest size. Default: 8.",
      converter = BytesConverter.class)
  long minBytes = 8;

  @Option(
      names = "--max-bytes",
      paramLabel = "BYTES",
      description = "Largest size, such as 4096, 64K or 1G. Default: 64M.",
      converter = BytesConverter.class)
  long maxBytes = 64L << 20;

  @Option(
      names = "--step-factor",
      paramLabel = "N",
      description = "Each size is N times the one before. Default: 2.")
  int stepFactor = 2;

  @Option(
      names = "--dtype",
      paramLabel = "TYPE",
      completionCandidates = BenchChoices.ElementTypes.class,
      description = "Element type, by PyTorch's name. Default: float32.")
  String dtype = DType.FLOAT32.label();

  @Option(
      names = "--redop",
      paramLabel = "OP",
      completionCandidates = BenchChoices.ReduceOps.class,
      description = "Reduce operation: sum avg product min max band bor bxor. Default: sum.")
  String redop = "sum";

  @Option(
      names = "--iters",
      paramLabel = "N",
      description =
          "Operations per size, rounded up if several are timed at once. Default: as many as fit"
              + " into --time, but at least 200 (30 from 8 MiB up, 8 from 64 MiB up).")
  @Nullable Integer iterations;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description =
          "Warm-up operations per size. Default: as many as take 200 ms, and a second more"
              + " before the first size.")
  @Nullable Integer warmup;

  @Option(
      names = "--time",
      paramLabel = "TIME",
      description = "How long to measure a size, without --iters. Default: 500ms.")
  Duration time = Duration.ofMillis(500);

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "Longest wait for set-up and for each operation. Default: 2m.")
  Duration timeout = Duration.ofMinutes(2);

  @Option(
      names = "--graph",
      description =
          "On a device, time replays of a graph of the calls instead of the calls themselves.")
  boolean graph;

  @Option(
      names = "--symmetric",
      description = "Allocate the tensors in symmetric memory; the backend must have it.")
  boolean symmetric;

  @Option(
      names = "--uneven",
      description =
          "Give ranks parts that differ by up to 10 percent in allGather and reduceScatter; the"
              + " backend must take them.")
  boolean uneven;

  /** Validates the values and returns the sizes in bytes. */
  List<Long> sizes() {
    List<Long> sizes = sizes(minBytes, maxBytes, stepFactor);
    requireRoom(maxBytes);
    if (iterations != null && iterations < 1) {
      throw new IllegalArgumentException("--iters must be at least 1, not " + iterations);
    }
    if (warmup != null && warmup < 0) {
      throw new IllegalArgumentException("--warmup must not be negative: " + warmup);
    }
    checkTimes();
    return sizes;
  }

  /** Validates and returns the sizes between two, each a multiple of the one before. */
  static List<Long> sizes(long least, long most, int factor) {
    if (least < 1 || most < least) {
      throw new IllegalArgumentException(
          "--min-bytes must be from 1 to --max-bytes, not "
              + least
              + " while --max-bytes is "
              + most);
    }
    if (factor < 2) {
      throw new IllegalArgumentException("--step-factor must be at least 2, not " + factor);
    }
    List<Long> sizes = new ArrayList<>(List.of(least));
    while (sizes.getLast() <= most / factor) {
      sizes.add(sizes.getLast() * factor);
    }
    return sizes;
  }

  /** Validates the times, which the ranks get as whole milliseconds. */
  private void checkTimes() {
    check("--time", time);
    check("--timeout", timeout);
  }

  private static void check(String option, Duration value) {
    if (value.toMillis() < 1) {
      throw new IllegalArgumentException(
          option + " must be at least 1 ms, not " + value.toNanos() / 1e6 + " ms");
    }
  }

  private static void requireRoom(long bytes) {
    if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
        && bytes > system.getTotalMemorySize()) {
      throw new IllegalArgumentException(
          "--max-bytes must be at most the "
              + system.getTotalMemorySize()
              + " bytes of memory of this machine, not "
              + bytes);
    }
  }

  /** Returns the element type. */
  DType elementType() {
    return DType.ofLabel(dtype.toLowerCase(Locale.ROOT));
  }

  /** Returns the reduction operator. */
  ReduceOp reduceOp() {
    return ReduceOp.ofName(redop);
  }

  /** Writes the options as arguments for the ranks. */
  List<String> toArguments() {
    List<String> arguments = new ArrayList<>();
    arguments.add("--backend=" + backend);
    arguments.add("--min-bytes=" + minBytes);
    arguments.add("--max-bytes=" + maxBytes);
    arguments.add("--step-factor=" + stepFactor);
    arguments.add("--dtype=" + dtype);
    arguments.add("--redop=" + redop);
    if (iterations != null) {
      arguments.add("--iters=" + iterations);
    }
    if (warmup != null) {
      arguments.add("--warmup=" + warmup);
    }
    arguments.add("--time=" + time.toMillis() + "ms");
    arguments.add("--timeout=" + timeout.toMillis() + "ms");
    if (graph) {
      arguments.add("--graph");
    }
    if (uneven) {
      arguments.add("--uneven");
    }
    if (symmetric) {
      arguments.add("--symmetric");
    }
    arguments.addAll(ops);
    return arguments;
  }

  /** A converter for numbers of bytes in the format of settings. */
  static final class BytesConverter implements ITypeConverter<Long> {
    @Override
    public Long convert(String text) {
      try {
        return Setting.parseBytes(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException("'" + text + "': " + e.getMessage());
      }
    }
  }
}
