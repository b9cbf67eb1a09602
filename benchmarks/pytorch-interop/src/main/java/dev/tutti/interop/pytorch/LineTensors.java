package dev.tutti.interop.pytorch;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerType;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** The tensors that a line needs on a rank of Tutti; also collects what the line leaves. */
final class LineTensors {
  private final ProcessGroup group;
  private final Line line;
  private final DType type;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  /** Takes the group to run in, and a line whose word 1 is the element type. */
  LineTensors(ProcessGroup group, Line line) {
    this.group = group;
    this.line = line;
    this.type = DType.ofLabel(line.word(1));
  }

  DType type() {
    return type;
  }

  /** Returns this rank's input to an operation that reduces with word 2 of the line. */
  Tensor toReduce(long count) {
    return input(count, line.word(2));
  }

  /** Returns this rank's input to an operation that does not reduce. */
  Tensor toMove(long count) {
    return input(count, "");
  }

  private Tensor input(long count, String reduceOp) {
    byte[] bytes =
        PeerData.input(
            PeerType.of(line.word(1)),
            PeerData.Pattern.of(reduceOp, line.option("data", "default")),
            group.rank(),
            0,
            Math.toIntExact(count),
            Long.parseLong(line.option("seed", "0")));
    Tensor tensor = empty(count);
    MemorySegment.copy(bytes, 0, tensor.segment(), ValueLayout.JAVA_BYTE, 0, bytes.length);
    return tensor;
  }

  Tensor empty(long count) {
    return Tensor.allocate(type, count);
  }

  /** Returns a tensor for each rank of the group. */
  List<Tensor> emptyForAll(long count) {
    return IntStream.range(0, group.size()).mapToObj(_ -> empty(count)).toList();
  }

  /** Returns the parts of a tensor, one for each rank. */
  List<Tensor> parts(Tensor tensor, long count) {
    return split(tensor, IntStream.range(0, group.size()).mapToLong(_ -> count).toArray());
  }

  /** Returns copies of consecutive parts of a tensor. */
  List<Tensor> split(Tensor tensor, long[] counts) {
    List<Tensor> parts = new ArrayList<>();
    long start = 0;
    for (long count : counts) {
      parts.add(tensor.narrow(0, start, count).copy());
      start += count;
    }
    return parts;
  }

  void result(Tensor tensor) {
    out.writeBytes(tensor.segment().toArray(ValueLayout.JAVA_BYTE));
  }

  void results(List<Tensor> tensors) {
    tensors.forEach(this::result);
  }

  /** Returns all results so far, one after another. */
  byte[] bytes() {
    return out.toByteArray();
  }

  static long sum(long[] counts) {
    return Arrays.stream(counts).sum();
  }
}
