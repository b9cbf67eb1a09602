package dev.tutti.cuda.driver;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Computes what {@link FakeNccl} does with elements; types and operators have NCCL's numbers. */
final class PlayedElements {
  private static final List<ReduceOp.Kind> OPS =
      List.of(
          ReduceOp.Kind.SUM,
          ReduceOp.Kind.PRODUCT,
          ReduceOp.Kind.MAX,
          ReduceOp.Kind.MIN,
          ReduceOp.Kind.AVG);

  private PlayedElements() {}

  static DType dtype(int type) {
    return switch (type) {
      case 0 -> DType.INT8;
      case 1 -> DType.UINT8;
      case 2 -> DType.INT32;
      case 4 -> DType.INT64;
      case 6 -> DType.FLOAT16;
      case 7 -> DType.FLOAT32;
      case 8 -> DType.FLOAT64;
      case 9 -> DType.BFLOAT16;
      default -> throw new AssertionError("type " + type);
    };
  }

  private static MemorySegment segment(byte[] data) {
    return Arena.ofAuto().allocate(data.length, 16).copyFrom(MemorySegment.ofArray(data));
  }

  static byte[] scaled(byte[] data, int type, double factor) {
    MemorySegment values = segment(data);
    HostReducer.scale(dtype(type), values, 0, data.length / dtype(type).byteSize(), factor);
    return values.toArray(ValueLayout.JAVA_BYTE);
  }

  static byte[] sum(List<byte[]> brought, int type, int op) {
    ReduceOp.Kind kind = op < OPS.size() ? OPS.get(op) : ReduceOp.Kind.SUM;
    MemorySegment result = segment(brought.get(0));
    long count = result.byteSize() / dtype(type).byteSize();
    MemorySegment[] inputs =
        brought.stream().map(PlayedElements::segment).toArray(MemorySegment[]::new);
    HostReducer.combineAll(kind, dtype(type), result, 0, inputs, 0, count);
    return result.toArray(ValueLayout.JAVA_BYTE);
  }
}
