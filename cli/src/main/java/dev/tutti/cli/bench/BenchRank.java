package dev.tutti.cli.bench;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.spi.DeviceSession;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The measurement on one rank.
 *
 * <p>For each size, a rank checks the results, then warms up for 200 ms (a second longer for the
 * first size, as all code is cold then), and on until the compilers of all ranks have little to do.
 * Then rank 0 chooses a number of operations from the time that one took, the ranks run them back
 * to back on zeros, with one timestamp each, and check again. The times of rank 0 are reported. On
 * a device, a timestamp covers many operations, since the device runs asynchronously to the thread
 * that calls them. The decisions of rank 0, and the numbers of wrong elements, travel through the
 * store and not through the operations under test.
 */
final class BenchRank {
  private static final long WARMUP_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long COLD_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final long MOST_WARMUP_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /**
   * The compilation time, over all ranks, in a slice of warm-up that calls for no further slice.
   */
  private static final long LITTLE_COMPILED_MILLIS = 20;

  private static final long MAX_OPERATIONS = 50_000;
  private static final long MAX_TIMES = 1 << 20;

  /**
   * The number of calls that bring the ranks, which receive the number of calls one after another,
   * into step.
   */
  private static final long LEAD_IN = 2;

  private final ProcessGroup group;
  private final BenchOptions options;
  private final @Nullable DeviceSession device;
  private final Consumer<BenchRow> rows;
  private final Store store;
  private final CompilerWatch compiler = new CompilerWatch();
  private long step;
  private boolean cold = true;

  /**
   * Creates a rank.
   *
   * @param group the group of all ranks
   * @param options the options of the measurement, equal on all ranks
   * @param device the device of the tensors, or null for host memory
   * @param rows receives each row as it is measured; called on rank 0 only
   */
  BenchRank(
      ProcessGroup group,
      BenchOptions options,
      @Nullable DeviceSession device,
      Consumer<BenchRow> rows) {
    this.group = group;
    this.options = options;
    this.device = device;
    this.rows = rows;
    this.store = group.store();
  }

  /** Runs all operations at all sizes. */
  void run() {
    DType dtype = options.elementType();
    for (String name : options.ops) {
      BenchOp op = BenchOp.ofLabel(name);
      ReduceOp redop = op.reduces() ? options.reduceOp() : ReduceOp.SUM;
      for (long size : op.sizes(options.sizes(), group.size(), dtype)) {
        try (BenchMemory memory = new BenchMemory(group, device, options.symmetric)) {
          BenchOp.Setup setup =
              new BenchOp.Setup(group, memory, dtype, redop, "bench/" + name, options.uneven);
          BenchCase item = op.prepare(setup, size);
          BenchRow row = measure(op, item, memory, dtype, redop);
          if (group.rank() == 0) {
            rows.accept(row);
          }
          if (device != null || options.symmetric) {
            group.barrier();
          }
        }
      }
    }
  }

  private BenchRow measure(
      BenchOp op, BenchCase item, BenchMemory memory, DType dtype, ReduceOp redop) {
    long wrong = total(item.check().getAsLong());
    item.buffers().forEach(buffer -> memory.fill(buffer, (byte) 0));
    long[] nanos;
    double mean;
    int operations;
    try (BenchLoop loop = loop(item)) {
      operations = loop.operations();
      long calls = agree(calls(item, operations, warmUp(loop)));
      nanos = new long[(int) Math.min(calls, MAX_TIMES)];
      loop.run(LEAD_IN, nanos);
      mean = loop.run(calls, nanos) / 1e3 / calls / operations;
    }
    Arrays.sort(nanos);
    wrong += total(item.check().getAsLong());
    return new BenchRow(
        op.label(),
        options.backend,
        group.size(),
        item.bytes(),
        item.count(),
        op.hasSizes() ? dtype.label() : "none",
        op.reduces() ? redop.kind().name().toLowerCase(java.util.Locale.ROOT) : "none",
        percentile(nanos, 50) / 1e3 / operations,
        percentile(nanos, 99) / 1e3 / operations,
        mean,
        op.busFactor(group.size()),
        wrong);
  }

  private BenchLoop loop(BenchCase item) {
    return device == null
        ? BenchLoop.onHost(item)
        : BenchLoop.onDevice(item, device, options.iterations, options.graph, options.timeout);
  }

  /** Warms up and returns the time per call in nanoseconds. */
  private double warmUp(BenchLoop loop) {
    if (options.warmup != null) {
      long calls = Math.max(1, options.warmup / loop.operations());
      return (double) loop.run(calls, new long[1]) / calls;
    }
    long[] nanosOfCalls = new long[(int) MAX_OPERATIONS];
    long enough = cold ? COLD_NANOS + WARMUP_NANOS : WARMUP_NANOS;
    cold = false;
    long most = enough + MOST_WARMUP_NANOS;
    long spent = 0;
    long calls = 1;
    double perCall = 0;
    while (calls > 0) {
      long before = compiler.millis();
      long nanos = loop.run(calls, nanosOfCalls);
      spent += nanos;
      perCall = (double) nanos / calls;
      long next = nanos < SLICE_NANOS || spent < enough ? calls * 2 : calls;
      if (agree(spent < enough ? 0 : 1) == 1) {
        compiler.awaitIdle();
        long compiled = total(compiler.millis() - before);
        next = compiled > LITTLE_COMPILED_MILLIS && spent < most ? next : 0;
      }
      calls = agree(next);
    }
    return perCall;
  }

  private static double percentile(long[] sorted, int percent) {
    return sorted[(int) Math.ceilDiv((long) sorted.length * percent, 100L) - 1];
  }

  private long calls(BenchCase item, int operationsOfCall, double nanosPerCall) {
    long operations;
    if (options.iterations != null) {
      operations = options.iterations;
    } else {
      double perOperation = Math.max(1, nanosPerCall / operationsOfCall);
      long least = item.bytes() >= 64L << 20 ? 8 : item.bytes() >= 8L << 20 ? 30 : 200;
      operations =
          Math.clamp((long) (options.time.toNanos() / perOperation), least, MAX_OPERATIONS);
    }
    return Math.ceilDiv(operations, operationsOfCall);
  }

  /** Returns rank 0's number on all ranks. */
  private long agree(long value) {
    String key = "bench/agree" + step++;
    if (group.rank() == 0) {
      store.set(key, Long.toString(value));
      return value;
    }
    return parse(store.get(key, options.timeout));
  }

  /** Returns the sum of all ranks' numbers on rank 0, and 0 on the others. */
  private long total(long mine) {
    String key = "bench/total" + step++ + "/";
    store.set(key + group.rank(), Long.toString(mine));
    if (group.rank() != 0) {
      return 0;
    }
    List<String> keys = IntStream.range(0, group.size()).mapToObj(rank -> key + rank).toList();
    return store.multiGet(keys, options.timeout).stream().mapToLong(BenchRank::parse).sum();
  }

  private static long parse(byte[] text) {
    return Long.parseLong(new String(text, UTF_8));
  }
}
