package dev.tutti.peer.libtorch;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.bytedeco.pytorch.global.torch.ScalarType;

/** A dense one-dimensional tensor that libtorch owns, with its bytes in view. */
record PeerBuffer(Tensor tensor, MemorySegment bytes) {
  /** Marks bytes that an operation should overwrite. */
  private static final byte UNWRITTEN = (byte) 0xa5;

  static PeerBuffer allocate(PeerType type, long count) {
    Tensor tensor =
        torch.empty(
            new long[] {count}, new TensorOptions(scalarType(type)), new MemoryFormatOptional());
    MemorySegment bytes =
        count == 0
            ? MemorySegment.NULL
            : MemorySegment.ofAddress(tensor.data_ptr().address())
                .reinterpret(count * type.byteSize());
    bytes.fill(UNWRITTEN);
    return new PeerBuffer(tensor, bytes);
  }

  static PeerBuffer of(PeerType type, byte[] content) {
    PeerBuffer buffer = allocate(type, content.length / type.byteSize());
    MemorySegment.copy(MemorySegment.ofArray(content), 0, buffer.bytes, 0, content.length);
    return buffer;
  }

  static List<PeerBuffer> split(PeerType type, byte[] content, long[] counts) {
    List<PeerBuffer> parts = new ArrayList<>();
    int from = 0;
    for (long count : counts) {
      int to = from + Math.toIntExact(count * type.byteSize());
      parts.add(of(type, Arrays.copyOfRange(content, from, to)));
      from = to;
    }
    return parts;
  }

  static List<PeerBuffer> allocateAll(PeerType type, long[] counts) {
    return Arrays.stream(counts).mapToObj(count -> allocate(type, count)).toList();
  }

  static TensorVector vector(List<PeerBuffer> buffers) {
    return new TensorVector(buffers.stream().map(PeerBuffer::tensor).toArray(Tensor[]::new));
  }

  static byte[] content(List<PeerBuffer> buffers) {
    byte[] all =
        new byte[Math.toIntExact(buffers.stream().mapToLong(b -> b.bytes.byteSize()).sum())];
    int at = 0;
    for (PeerBuffer buffer : buffers) {
      int length = (int) buffer.bytes.byteSize();
      MemorySegment.copy(buffer.bytes, ValueLayout.JAVA_BYTE, 0, all, at, length);
      at += length;
    }
    return all;
  }

  static ScalarType scalarType(PeerType type) {
    return switch (type) {
      case FLOAT32 -> ScalarType.Float;
      case FLOAT64 -> ScalarType.Double;
      case FLOAT16 -> ScalarType.Half;
      case BFLOAT16 -> ScalarType.BFloat16;
      case INT8 -> ScalarType.Char;
      case UINT8 -> ScalarType.Byte;
      case BOOL -> ScalarType.Bool;
      case INT16 -> ScalarType.Short;
      case INT32 -> ScalarType.Int;
      case INT64 -> ScalarType.Long;
      case COMPLEX64 -> ScalarType.ComplexFloat;
      case COMPLEX128 -> ScalarType.ComplexDouble;
    };
  }
}
