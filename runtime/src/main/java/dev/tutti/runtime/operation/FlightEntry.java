package dev.tutti.runtime.operation;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.WorkState;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.spi.Call;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** One slot of the flight record, which is reused for other operations. */
final class FlightEntry {
  /*
   * References are compared before they are written: most operations resemble the previous one in
   * the slot, and a reference costs more to write than to compare. If there is one tensor on a
   * side, its sizes are copied to "dims", so that its array is not retained.
   */
  private static final int MOST_DIMS = 6;

  private static final long[] NONE = {};

  private OpType type = OpType.UNKNOWN;
  private long sequence;
  private ReduceOp.@Nullable Kind reduceOp;
  private @Nullable DType dtype;
  private long numel;
  private int peer;
  private int tag;
  private boolean inPlace;
  private int inputDims;
  private int outputDims;
  private final long[] dims = new long[2 * MOST_DIMS];
  private @Nullable List<long[]> inputs;
  private @Nullable List<long[]> outputs;
  private long[] splits = NONE;
  private WorkState state = WorkState.QUEUED;
  private @Nullable String path;
  private long issued;
  private long started;
  private long ended;

  void renumber(long newSequence) {
    sequence = newSequence;
  }

  boolean isNumbered() {
    return sequence != 0;
  }

  /** Takes over the arguments of an operation. */
  @SuppressWarnings("ReferenceEquality") // whether there is anything to write
  void set(Call call, long newSequence) {
    OpType newType = call.type();
    if (type != newType) {
      type = newType;
    }
    sequence = newSequence;
    ReduceOp.Kind newReduceOp = call.reduceKind();
    if (reduceOp != newReduceOp) {
      reduceOp = newReduceOp;
    }
    DType newDtype = call.dtype();
    if (dtype != newDtype) {
      dtype = newDtype;
    }
    numel = call.numel();
    peer = call.rootOr(-1);
    tag = call.tag();
    inPlace = call.isInPlace();
    inputDims = -1;
    outputDims = -1;
    if (call.inputCount() == 1) {
      inputDims = copy(call.input(), 0);
    }
    if (!inPlace && call.outputCount() == 1) {
      outputDims = copy(call.output(), MOST_DIMS);
    }
    long[] newSplits = splits(call);
    if (splits != newSplits) {
      splits = newSplits;
    }
    List<long[]> newInputs = inputDims < 0 ? sizes(call.inputCount(), call, true) : null;
    if (inputs != newInputs) {
      inputs = newInputs;
    }
    List<long[]> newOutputs =
        outputDims < 0 && !inPlace ? sizes(call.outputCount(), call, false) : null;
    if (outputs != newOutputs) {
      outputs = newOutputs;
    }
  }

  /** Returns how many rows each rank gives or gets, where that stands for a list of tensors. */
  private static long[] splits(Call call) {
    return switch (call.type()) {
      case ALL_GATHER_INTO -> call.outputSplits();
      case REDUCE_SCATTER_INTO -> call.inputSplits();
      default -> NONE;
    };
  }

  private int copy(Tensor tensor, int from) {
    int count = tensor.dim();
    if (count > MOST_DIMS) {
      return -1;
    }
    for (int i = 0; i < count; i++) {
      dims[from + i] = tensor.size(i);
    }
    return count;
  }

  private static @Nullable List<long[]> sizes(int count, Call call, boolean isInput) {
    if (count == 0) {
      return null;
    }
    List<long[]> all = new ArrayList<>(count);
    for (Tensor tensor : isInput ? call.inputs() : call.outputs()) {
      all.add(tensor.shape());
    }
    return all;
  }

  void begin(WorkState newState, long issuedNanos) {
    state(newState);
    issued = issuedNanos;
    started = newState == WorkState.QUEUED ? 0 : issuedNanos;
    ended = 0;
    path(null);
  }

  void end(WorkState newState, long startedNanos, long endedNanos, @Nullable String newPath) {
    state(newState);
    if (startedNanos != 0) {
      started = startedNanos;
    }
    ended = endedNanos;
    path(newPath);
  }

  private void state(WorkState newState) {
    if (state != newState) {
      state = newState;
    }
  }

  @SuppressWarnings("ReferenceEquality") // whether there is anything to write
  private void path(@Nullable String newPath) {
    if (path != newPath) {
      path = newPath;
    }
  }

  OpType type() {
    return type;
  }

  /** Returns this entry as an issued collective. */
  Issued toIssued() {
    return new Issued(
        type,
        sequence,
        reduceOp == null ? "" : reduceOp.name(),
        dtype == null ? "" : dtype.label(),
        numel,
        peer,
        RankProgress.parts(type, inputSizes(), outputSizes()));
  }

  private List<List<Long>> inputSizes() {
    List<List<Long>> sizes = sizes(inputs, inputDims, 0);
    return type == OpType.REDUCE_SCATTER_INTO ? inRows(sizes) : sizes;
  }

  private List<List<Long>> outputSizes() {
    List<List<Long>> sizes = inPlace ? inputSizes() : sizes(outputs, outputDims, MOST_DIMS);
    return type == OpType.ALL_GATHER_INTO ? inRows(sizes) : sizes;
  }

  /** Divides the one tensor of a side into the rows of each rank, as c10d has them. */
  private List<List<Long>> inRows(List<List<Long>> sizes) {
    if (splits.length == 0) {
      return sizes;
    }
    List<List<Long>> all = new ArrayList<>();
    for (long rows : splits) {
      List<Long> one = new ArrayList<>(sizes.getFirst());
      one.set(0, rows);
      all.add(one);
    }
    return all;
  }

  /** Returns the operation as c10d has it: only lists have parts of unequal size there. */
  private OpType typeInTorch() {
    if (splits.length == 0) {
      return type;
    }
    return type == OpType.ALL_GATHER_INTO ? OpType.ALL_GATHER : OpType.REDUCE_SCATTER;
  }

  private List<List<Long>> sizes(@Nullable List<long[]> several, int count, int from) {
    if (count >= 0) {
      return List.of(Arrays.stream(dims, from, from + count).boxed().toList());
    }
    return several == null
        ? List.of()
        : several.stream().map(shape -> Arrays.stream(shape).boxed().toList()).toList();
  }

  /**
   * Converts this entry to a map with c10d's fields and Tutti's own.
   *
   * @param offset the difference between the group's clock and the time of day, in nanoseconds
   */
  Map<String, Object> toMap(long recordId, GroupIdentity group, long lastCollective, long offset) {
    Map<String, Object> map = new LinkedHashMap<>();
    boolean isMessage = type.isPointToPoint();
    boolean isRetired = state.isFinal();
    map.put("record_id", recordId);
    map.put("op", type.label());
    map.put("seq", sequence);
    map.put("pg_id", group.name().hashCode() & 0xffffL);
    map.put("process_group", List.of(group.name(), FlightRecord.description(group)));
    map.put("collective_seq_id", isMessage ? lastCollective : sequence);
    map.put("p2p_seq_id", isMessage ? sequence : 0L);
    map.put("op_id", recordId);
    map.put("profiling_name", FlightRecord.profilingName(typeInTorch(), group.rank(), peer));
    map.put("is_p2p", isMessage);
    map.put("input_sizes", inputSizes());
    map.put("input_dtypes", dtypes(inputSizes().size()));
    map.put("output_sizes", outputSizes());
    map.put("output_dtypes", dtypes(outputSizes().size()));
    map.put(
        "state",
        state == WorkState.COMPLETED
            ? "completed"
            : state == WorkState.QUEUED || started == 0 ? "scheduled" : "started");
    map.put("work_state", state.name());
    map.put("retired", isRetired);
    map.put("time_created_ns", issued + offset);
    map.put("time_discovered_started_ns", started == 0 ? null : started + offset);
    map.put("time_discovered_completed_ns", ended == 0 ? null : ended + offset);
    map.put("duration_ms", ended == 0 || started == 0 ? null : (ended - started) / 1e6);
    map.put("frames", List.of());
    map.put("path", path == null ? "" : path);
    map.put("reduce_op", reduceOp == null ? "" : reduceOp.name());
    map.put("root", isMessage ? -1L : (long) peer);
    map.put("peer", isMessage ? (long) peer : -1L);
    map.put("tag", (long) tag);
    return map;
  }

  private List<String> dtypes(int count) {
    String name = dtype == null ? "" : FlightRecord.dtypeName(dtype);
    return Collections.nCopies(count, name);
  }
}
