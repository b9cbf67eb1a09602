package dev.tutti.runtime.group;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.runtime.group.Overlaps.InPlace;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Checks the arguments of operations before anything is sent. Allocates only to report an error.
 */
final class Checks {
  /** Stands for any thread other than the caller's; is never started. */
  private static final Thread STRANGER = Time.SYSTEM.unstarted("stranger", () -> {});

  private final GroupIdentity group;
  private final Map<String, BoundBackend> backends;
  private final Consumer<String> refused;
  private final BoundBackend forBarriers;
  private final Overlaps overlaps;

  /**
   * Creates the checks of a group.
   *
   * @param backends the backends by kind of device
   * @param refused receives the reason for which a call is refused
   */
  Checks(GroupIdentity group, Map<String, BoundBackend> backends, Consumer<String> refused) {
    this.group = group;
    this.backends = backends;
    this.refused = refused;
    this.overlaps = new Overlaps(this, group.rank());
    this.forBarriers =
        backends.values().stream()
            .filter(each -> each.backend().takesBarriers())
            .findFirst()
            .orElseGet(this::hostBackend);
  }

  /** Returns the exception for a bad argument, with a text that has arguments of its own. */
  @SuppressWarnings("AnnotateFormatMethod") // the annotation is in a library that is not used
  IllegalArgumentException bad(OpType op, String what, Object... args) {
    String text = op.label() + " on " + group.describe() + ": " + what.formatted(args);
    refused.accept(text);
    return new IllegalArgumentException(text);
  }

  /** Checks that an argument is not null. */
  void given(OpType op, String argument, @Nullable Object value) {
    if (value == null) {
      throw bad(op, "%s must not be null", argument);
    }
  }

  UnsupportedOperationException unsupported(OpType op, BoundBackend backend, String what) {
    String text =
        "%s on rank %s: backend '%s' does not support %s"
            .formatted(op.label(), group.rank(), backend.name(), what);
    refused.accept(text);
    return new UnsupportedOperationException(text);
  }

  Overlaps overlaps() {
    return overlaps;
  }

  /** Finds the backend for a tensor's device, and checks that it supports the operation. */
  BoundBackend backendFor(OpType op, String argument, Tensor tensor) {
    given(op, argument, tensor);
    BoundBackend backend = backends.get(tensor.device().type());
    if (backend == null) {
      throw bad(
          op,
          "%s is on %s, but the group has backends for %s",
          argument,
          tensor.device(),
          backends.keySet());
    }
    require(op, backend);
    return backend;
  }

  /** Returns the backend for barriers. */
  BoundBackend barrierBackend() {
    require(OpType.BARRIER, forBarriers);
    return forBarriers;
  }

  /** Returns the host's backend, or else the first one. */
  BoundBackend hostBackend() {
    BoundBackend host = backends.get(Device.CPU.type());
    return host == null ? backends.values().iterator().next() : host;
  }

  /** Returns the host's backend if it has a feature, or else any backend that has it. */
  BoundBackend backendWith(OpType op, Capabilities.Feature feature) {
    BoundBackend host = hostBackend();
    if (host.capabilities().has(feature)) {
      return host;
    }
    for (BoundBackend backend : backends.values()) {
      if (backend.capabilities().has(feature)) {
        return backend;
      }
    }
    throw missing(op, host, feature, feature.toString());
  }

  /** Finds the backend for a type of device, and checks that it has a feature. */
  BoundBackend backendWith(OpType op, Capabilities.Feature feature, String deviceType) {
    given(op, "device type", deviceType);
    BoundBackend backend = backends.get(deviceType);
    if (backend == null) {
      throw bad(op, "there is no backend for %s, only for %s", deviceType, backends.keySet());
    }
    if (!backend.capabilities().has(feature)) {
      throw missing(op, backend, feature, feature.toString());
    }
    return backend;
  }

  private UnsupportedOperationException missing(
      OpType op, BoundBackend backend, Capabilities.Feature feature, String what) {
    String reason = backend.missing().get(feature);
    return unsupported(op, backend, what + (reason == null ? "" : " in this group: " + reason));
  }

  private void require(OpType op, BoundBackend backend) {
    if (!backend.capabilities().has(op)) {
      String remedy = op == OpType.RECV_ANY_SOURCE ? "; name the sender, with recv" : "";
      throw unsupported(op, backend, op.label() + remedy);
    }
  }

  void rank(OpType op, String argument, int rank) {
    if (rank < 0 || rank >= group.size()) {
      throw bad(op, "%s must be a rank in 0..%s, not %s", argument, group.size() - 1, rank);
    }
  }

  void subgroup(List<Integer> ranks) {
    OpType op = OpType.SUBGROUP;
    given(op, "ranks", ranks);
    for (Integer rank : ranks) {
      given(op, "each of ranks", rank);
      rank(op, "each of ranks", rank);
    }
    if (ranks.isEmpty() || ranks.stream().distinct().count() != ranks.size()) {
      throw bad(op, "ranks must be one or more ranks without duplicates, not %s", ranks);
    }
  }

  /**
   * Checks the size of symmetric memory: the total of all ranks, with rounding, must fit in a long.
   */
  void symmetricSize(OpType op, long byteSize) {
    long most = (1L << 62) / group.size();
    if (byteSize < 1 || byteSize > most) {
      throw bad(op, "byteSize must be in 1..%s, but is %s", most, byteSize);
    }
  }

  void peer(OpType op, int peer) {
    rank(op, "peer", peer);
    if (peer == group.rank()) {
      throw bad(op, "peer must be another rank, not %s itself", peer);
    }
  }

  void tag(OpType op, int tag, BoundBackend backend) {
    if (tag < 0) {
      throw bad(op, "tag must not be negative, but is %s", tag);
    }
    if (tag > 0 && !backend.capabilities().has(Capabilities.Feature.TAGS)) {
      throw missing(op, backend, Capabilities.Feature.TAGS, "the tag " + tag);
    }
  }

  void timeout(OpType op, Duration timeout) {
    given(op, "timeout", timeout);
    if (!timeout.isPositive()) {
      throw bad(op, "timeout must be positive, but is %s", timeout);
    }
  }

  /** Checks a dense tensor that is to be moved. */
  void movable(OpType op, String argument, Tensor tensor, BoundBackend backend, boolean written) {
    given(op, argument, tensor);
    if (tensor.isSparse()) {
      throw bad(op, "%s must be dense, but is %s", argument, tensor);
    }
    if (!tensor.device().type().equals(backend.deviceType())) {
      throw bad(
          op,
          "%s must be on %s like the first tensor, but is %s",
          argument,
          backend.deviceType(),
          tensor);
    }
    Capabilities capabilities = backend.capabilities();
    if (!capabilities.movable().contains(tensor.dtype())) {
      throw unsupported(op, backend, "dtype " + tensor.dtype().label() + " of " + argument);
    }
    if (tensor.device().isCpu()) {
      host(op, argument, tensor, written);
    } else if (!tensor.isContiguous() && !capabilities.has(Capabilities.Feature.STRIDED_TENSORS)) {
      throw bad(op, "%s must be contiguous, but is %s", argument, tensor);
    }
    if (written && Overlaps.overlapsItself(tensor)) {
      throw bad(op, "%s is written to, but its elements share memory: %s", argument, tensor);
    }
  }

  private void host(OpType op, String argument, Tensor tensor, boolean written) {
    MemorySegment segment = tensor.segment();
    if (!segment.scope().isAlive()) {
      throw bad(op, "the memory of %s was freed: %s", argument, tensor);
    }
    if (segment.isNative() && !segment.isAccessibleBy(STRANGER)) {
      throw bad(
          op,
          "the memory of %s is confined to one thread; use Arena.ofShared or Arena.ofAuto: %s",
          argument,
          tensor);
    }
    if (written && segment.isReadOnly()) {
      throw bad(op, "%s is written to, but its memory is read-only: %s", argument, tensor);
    }
  }

  /** Checks that the indices of a sparse host tensor are in bounds. */
  void indices(OpType op, String argument, Tensor tensor) {
    Tensor indices = tensor.indices();
    if (!indices.device().isCpu()) {
      return;
    }
    for (int d = 0; d < indices.size(0); d++) {
      long outside = IndexBounds.firstOutside(indices, d, tensor.size(d));
      if (outside >= 0) {
        throw bad(
            op,
            "indices[%s, %s] is %s, which is outside dimension %s of %s: %s",
            d,
            outside,
            indices.getLong(d * indices.size(1) + outside),
            d,
            argument,
            tensor);
      }
    }
  }

  void reducible(OpType op, Tensor tensor, ReduceOp reduceOp, BoundBackend backend) {
    given(op, "reduceOp", reduceOp);
    DType dtype = tensor.dtype();
    if (!reduceOp.isDefinedOn(dtype)) {
      throw bad(op, "reduce op %s is not defined on dtype %s", reduceOp, dtype.label());
    }
    if (!backend.capabilities().canReduce(dtype, reduceOp)) {
      throw unsupported(op, backend, reduceOp + " on dtype " + dtype.label());
    }
  }

  void same(OpType op, String argument, Tensor tensor, Tensor like) {
    if (tensor.dtype() != like.dtype()) {
      String dtype = like.dtype().label();
      throw bad(op, "%s must be of dtype %s, but is %s", argument, dtype, tensor);
    }
    if (!tensor.device().equals(like.device())) {
      throw bad(op, "%s must be on %s, but is %s", argument, like.device(), tensor);
    }
  }

  void sameSize(OpType op, String argument, Tensor tensor, Tensor like) {
    same(op, argument, tensor, like);
    if (tensor.numel() != like.numel()) {
      throw bad(
          op, "%s must have %s elements like %s, but is %s", argument, like.numel(), like, tensor);
    }
  }

  /** Checks that the backend takes a part of another size than this rank's. */
  void uneven(OpType op, BoundBackend backend, String argument, Tensor tensor, Tensor like) {
    if (!backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS)) {
      String sizes = argument + ": " + tensor.describe() + ", this rank's: " + like.describe();
      String what = "parts of unequal size (" + sizes + ")";
      throw missing(op, backend, Capabilities.Feature.UNEVEN_PARTS, what);
    }
  }

  /**
   * Checks this rank's part of a tensor that holds the parts of all ranks.
   *
   * @param rows the rows of each rank, from {@link Splits}; none if the parts are equal
   * @return where the part begins, in bytes
   */
  private long part(
      OpType op,
      BoundBackend backend,
      String wholeName,
      Tensor whole,
      String partName,
      Tensor part,
      long[] rows) {
    if (rows.length == 0) {
      times(op, wholeName, whole, partName, part);
      return group.rank() * part.byteSize();
    }
    same(op, partName, part, whole);
    long numel = rows[group.rank()] * (whole.numel() / Math.max(1, whole.size(0)));
    if (part.numel() != numel) {
      throw bad(
          op,
          "%s must have %s elements like %s rows of %s, but is %s",
          partName,
          numel,
          rows[group.rank()],
          wholeName,
          part);
    }
    boolean isTaken = backend.capabilities().has(Capabilities.Feature.UNEVEN_PARTS);
    long before = 0;
    for (int r = 0; r < rows.length; r++) {
      if (!isTaken && rows[r] != rows[0]) {
        String what = "parts of unequal size (rows of " + wholeName + ": %s)";
        throw missing(
            op, backend, Capabilities.Feature.UNEVEN_PARTS, what.formatted(Arrays.toString(rows)));
      }
      before += r < group.rank() ? rows[r] : 0;
    }
    return before * (whole.byteSize() / Math.max(1, whole.size(0)));
  }

  void count(OpType op, String argument, List<Tensor> tensors, int count) {
    given(op, argument, tensors);
    if (tensors.size() != count) {
      throw bad(op, "%s must hold %s tensors, but holds %s", argument, count, tensors.size());
    }
  }

  void times(OpType op, String argument, Tensor whole, String partName, Tensor part) {
    same(op, argument, whole, part);
    if (whole.numel() != part.numel() * group.size()) {
      throw bad(
          op,
          "%s must have %s elements (%s ranks times %s), but is %s",
          argument,
          part.numel() * group.size(),
          group.size(),
          partName,
          whole);
    }
  }

  /** Checks an all-reduce of a dense tensor, and returns its backend; allocates nothing. */
  BoundBackend forAllReduce(Tensor tensor, ReduceOp reduceOp) {
    return inPlace(OpType.ALL_REDUCE, tensor, reduceOp);
  }

  /** Checks a reduce, and returns its backend; allocates nothing. */
  BoundBackend forReduce(Tensor tensor, ReduceOp reduceOp, int root) {
    BoundBackend backend = inPlace(OpType.REDUCE, tensor, reduceOp);
    rank(OpType.REDUCE, "root", root);
    return backend;
  }

  private BoundBackend inPlace(OpType op, Tensor tensor, ReduceOp reduceOp) {
    BoundBackend backend = backendFor(op, "tensor", tensor);
    movable(op, "tensor", tensor, backend, true);
    reducible(op, tensor, reduceOp, backend);
    return backend;
  }

  /**
   * Checks a reduce-scatter of one tensor, and returns its backend; allocates nothing.
   *
   * @param rows from {@link Splits}; none if the parts are equal
   */
  BoundBackend forReduceScatterInto(Tensor output, Tensor input, long[] rows, ReduceOp reduceOp) {
    OpType op = OpType.REDUCE_SCATTER_INTO;
    BoundBackend backend = backendFor(op, "output", output);
    movable(op, "output", output, backend, true);
    movable(op, "input", input, backend, false);
    reducible(op, output, reduceOp, backend);
    long begin = part(op, backend, "input", input, "output", output, rows);
    overlaps.require(op, output, input, InPlace.OWN_PART, begin);
    return backend;
  }

  /** Checks a broadcast, and returns its backend; allocates nothing. */
  BoundBackend forBroadcast(Tensor tensor, int root) {
    OpType op = OpType.BROADCAST;
    BoundBackend backend = backendFor(op, "tensor", tensor);
    rank(op, "root", root);
    movable(op, "tensor", tensor, backend, group.rank() != root);
    return backend;
  }

  /**
   * Checks an all-gather into one tensor, and returns its backend; allocates nothing.
   *
   * @param rows from {@link Splits}; none if the parts are equal
   */
  BoundBackend forAllGatherInto(Tensor output, Tensor input, long[] rows) {
    OpType op = OpType.ALL_GATHER_INTO;
    BoundBackend backend = backendFor(op, "input", input);
    movable(op, "input", input, backend, false);
    movable(op, "output", output, backend, true);
    long begin = part(op, backend, "output", output, "input", input, rows);
    overlaps.require(op, output, input, InPlace.OWN_PART, begin);
    return backend;
  }

  /** Checks an exchange of rows, whose numbers are from {@link Splits}. */
  BoundBackend forAllToAllSingle(Tensor output, Tensor input, long[] outputRows, long[] inputRows) {
    OpType op = OpType.ALL_TO_ALL_SINGLE;
    BoundBackend backend = backendFor(op, "input", input);
    movable(op, "input", input, backend, false);
    movable(op, "output", output, backend, true);
    same(op, "output", output, input);
    if (output.numel() / Math.max(1, output.size(0)) != input.numel() / Math.max(1, input.size(0))
        && output.numel() != 0
        && input.numel() != 0) {
      throw bad(
          op,
          "rows of output must be as long as rows of input: %s, %s",
          output.describe(),
          input.describe());
    }
    if (outputRows[group.rank()] != inputRows[group.rank()]) {
      throw bad(
          op,
          "outputSplits[%1$s] is %2$s, but inputSplits[%1$s], which this rank sends to itself, is"
              + " %3$s",
          group.rank(),
          outputRows[group.rank()],
          inputRows[group.rank()]);
    }
    overlaps.require(op, output, input, InPlace.NONE, 0);
    return backend;
  }
}
