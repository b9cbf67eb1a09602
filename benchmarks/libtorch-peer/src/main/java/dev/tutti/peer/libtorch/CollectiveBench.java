package dev.tutti.peer.libtorch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.AllreduceOptions;
import org.bytedeco.pytorch.BroadcastOptions;
import org.bytedeco.pytorch.ProcessGroupGloo;
import org.bytedeco.pytorch.ReduceOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.Work;
import org.bytedeco.pytorch.global.torch;

/** Checks and times the calls of one rank, as {@link LibtorchBench} describes. */
final class CollectiveBench {
  private static final long PAGE = 4096;
  private static final long WARM_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long COLD_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int MOST_SAMPLES = 50_000;
  private static final long MIB = 1 << 20;

  private final PeerGroup group;
  private final ProcessGroupGloo gloo;
  private final PeerType type;
  private final String reduceOp;
  private final long targetNanos;
  private boolean cold = true;
  private final MemorySegment control = Arena.global().allocate(Long.BYTES, PAGE);
  private final TensorVector controlTensor = new TensorVector(tensor(control, PeerType.INT64, 1));

  CollectiveBench(PeerGroup group, PeerType type, String reduceOp, int targetMillis) {
    this.group = group;
    this.gloo = group.gloo();
    this.type = type;
    this.reduceOp = reduceOp;
    this.targetNanos = TimeUnit.MILLISECONDS.toNanos(targetMillis);
  }

  /** Runs one row and prints it on rank 0; returns whether the check found no errors. */
  boolean row(String op, long bytes, PeerOutput out) {
    int count = Math.toIntExact(bytes / type.byteSize());
    MemorySegment data =
        Arena.global()
            .allocate(Math.max(1, bytes * (op.equals("allgather") ? group.size() : 1)), PAGE);
    Call call = call(op, data, count);
    long wrong = total(check(op, data, count, call));
    data.fill((byte) 0);
    int callsPerSample = op.equals("broadcast") || op.equals("reduce") ? group.size() : 1;
    long[] nanos = timed(call, callsPerSample, warmUp(call, callsPerSample), bytes);
    if (group.rank() == 0) {
      out.line(json(op, bytes, count, BenchStatistics.of(nanos), nanos.length, wrong));
    }
    return wrong == 0;
  }

  private Call call(String op, MemorySegment data, int count) {
    TensorVector tensors = new TensorVector(tensor(data, type, count));
    return switch (op) {
      case "allreduce" -> {
        AllreduceOptions options = new AllreduceOptions();
        options.reduceOp(PeerReductions.reduceOp(reduceOp));
        yield _ -> gloo.allreduce(tensors, options);
      }
      case "reduce" -> {
        ReduceOptions options = new ReduceOptions();
        options.reduceOp(PeerReductions.reduceOp(reduceOp));
        yield i -> {
          options.rootRank(i % group.size());
          return gloo.reduce(tensors, options);
        };
      }
      case "broadcast" -> {
        BroadcastOptions options = new BroadcastOptions();
        yield i -> {
          options.rootRank(i % group.size());
          return gloo.broadcast(tensors, options);
        };
      }
      case "allgather" -> {
        Tensor output = tensor(data, type, (long) count * group.size());
        Tensor input =
            tensor(data.asSlice((long) group.rank() * count * type.byteSize()), type, count);
        yield _ -> gloo._allgather_base(output, input);
      }
      case "barrier" -> _ -> gloo.barrier();
      default ->
          throw new IllegalArgumentException(
              "--ops: expected allreduce, reduce, broadcast, allgather or barrier, got " + op);
    };
  }

  /** Runs the operation once on known input; returns the number of wrong elements on this rank. */
  private long check(String op, MemorySegment data, int count, Call call) {
    String script =
        switch (op) {
          case "allreduce" -> "allreduce " + type.scriptName() + " " + reduceOp + " " + count;
          case "reduce" -> "reduce " + type.scriptName() + " " + reduceOp + " " + count + " root=0";
          case "broadcast" -> "broadcast " + type.scriptName() + " " + count + " root=0";
          case "allgather" -> "allgather " + type.scriptName() + " " + count;
          default -> "barrier";
        };
    PeerData.Pattern pattern =
        PeerData.Pattern.of(script.contains(" product ") ? "product" : "", "default");
    byte[] input = PeerData.input(type, pattern, group.rank(), 0, count, 0);
    long at = op.equals("allgather") ? (long) group.rank() * input.length : 0;
    MemorySegment.copy(MemorySegment.ofArray(input), 0, data, at, input.length);
    finish(call, 0);
    MemorySegment expected =
        MemorySegment.ofArray(PeerOracle.expected(script, group.rank(), group.size()));
    long wrong = 0;
    for (long i = 0; i < expected.byteSize(); i += type.byteSize()) {
      wrong +=
          MemorySegment.mismatch(data, i, i + type.byteSize(), expected, i, i + type.byteSize()) < 0
              ? 0
              : 1;
    }
    return wrong;
  }

  /**
   * Takes samples for at least 500 ms, and for a second more before the first row. Samples come in
   * batches that rank 0 doubles, from the loop that is timed later. Returns the time of one sample
   * in nanoseconds.
   */
  private long warmUp(Call call, int callsPerSample) {
    long enough = cold ? COLD_NANOS + WARM_UP_NANOS : WARM_UP_NANOS;
    cold = false;
    long[] nanos = new long[MOST_SAMPLES];
    long start = System.nanoTime();
    int samples = 1;
    long perSample = 0;
    while (samples > 0) {
      perSample = Math.max(1, sample(call, callsPerSample, samples, nanos) / samples);
      boolean warm = System.nanoTime() - start >= enough;
      samples = Math.toIntExact(agreed(warm ? 0 : Math.min(2 * samples, MOST_SAMPLES)));
    }
    return perSample;
  }

  private long[] timed(Call call, int callsPerSample, long sampleNanos, long bytes) {
    long least = bytes < 8 * MIB ? 200 : bytes < 64 * MIB ? 30 : 8;
    int samples =
        Math.toIntExact(agreed(Math.clamp(targetNanos / sampleNanos, least, MOST_SAMPLES)));
    long[] nanos = new long[samples];
    finish(_ -> gloo.barrier(), 0);
    sample(call, callsPerSample, samples, nanos);
    return nanos;
  }

  /** Takes the times of samples, and returns the total time. */
  private static long sample(Call call, int callsPerSample, int samples, long[] nanos) {
    long start = System.nanoTime();
    long before = start;
    for (int sample = 0; sample < samples; sample++) {
      for (int i = 0; i < callsPerSample; i++) {
        finish(call, i);
      }
      long after = System.nanoTime();
      nanos[sample] = (after - before) / callsPerSample;
      before = after;
    }
    return before - start;
  }

  private static void finish(Call call, int i) {
    try (Work work = call.start(i)) {
      work._wait();
    }
  }

  private long agreed(long choice) {
    control.set(JAVA_LONG, 0, choice);
    finish(_ -> gloo.broadcast(controlTensor), 0);
    return control.get(JAVA_LONG, 0);
  }

  private long total(long mine) {
    control.set(JAVA_LONG, 0, mine);
    finish(_ -> gloo.allreduce(controlTensor), 0);
    return control.get(JAVA_LONG, 0);
  }

  private String json(
      String op, long bytes, int count, BenchStatistics time, int calls, long wrong) {
    int ranks = group.size();
    double algorithm = bytes / (time.p50Micros() * 1e3);
    double factor =
        switch (op) {
          case "allreduce" -> 2.0 * (ranks - 1) / ranks;
          case "allgather" -> ranks - 1;
          default -> 1;
        };
    return String.format(
        Locale.ROOT,
        "{\"op\":\"%s\",\"backend\":\"libtorch-gloo-2.10.0\",\"ranks\":%d,\"bytes\":%d,\"count\":%d,"
            + "\"dtype\":\"%s\",\"redop\":\"%s\",\"calls\":%d,%s,\"algbw_gbps\":%.4f,\"busbw_gbps\":%.4f,"
            + "\"wrong\":%d}",
        op,
        ranks,
        bytes,
        count,
        type.scriptName(),
        op.endsWith("reduce") ? reduceOp : "none",
        calls,
        time.json(),
        algorithm,
        algorithm * factor,
        wrong);
  }

  private static Tensor tensor(MemorySegment data, PeerType type, long count) {
    Pointer address = new Address(data.address());
    return torch.from_blob(
        address, new long[] {count}, new TensorOptions(PeerBuffer.scalarType(type)));
  }

  /**
   * A function that starts one operation; {@code i} chooses the root, modulo the number of ranks.
   */
  private interface Call {
    Work start(int i);
  }

  /** A raw address in the form that JavaCPP takes. */
  private static final class Address extends Pointer {
    Address(long address) {
      this.address = address;
    }
  }
}
