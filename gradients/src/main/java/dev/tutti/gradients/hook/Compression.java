package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.lang.foreign.Arena;
import java.util.function.Function;

/**
 * A hook that reduces gradients as 16-bit elements, which halves the bytes of float32 (c10d: {@code
 * fp16_compress_hook}, {@code bf16_compress_hook}). The backend computes the mean as it does for
 * that type, in float32 where it can, and it does not overflow if it can be represented.
 *
 * <p>Buckets of float32 and float64 are compressed; others are reduced as they are. A bucket on a
 * device is converted there, in the current stream, by the {@link GradientBucket#allocator}. On the
 * host, nothing is allocated after the first use of a bucket. Compression costs two passes over the
 * bucket, and memory for half of the bucket's size.
 */
public final class Compression implements GradientHook {
  private final Function<GradientBucket, Half> half;

  private Compression(DType type) {
    this.half = bucket -> new Half(halves(bucket, type), new HalfConversion(type));
  }

  /**
   * Creates a hook that sends float16, which has 11 bits of precision and represents numbers up to
   * 65,504; larger ones become infinite.
   */
  public static Compression float16() {
    return new Compression(DType.FLOAT16);
  }

  /** Creates a hook that sends bfloat16, which has 8 bits of precision and the range of float32. */
  public static Compression bfloat16() {
    return new Compression(DType.BFLOAT16);
  }

  private static Tensor halves(GradientBucket bucket, DType type) {
    Tensor whole = bucket.tensor();
    return bucket.allocator().allocate(Arena.ofAuto(), whole.device(), type, whole.numel());
  }

  /**
   * {@inheritDoc}
   *
   * @throws UnsupportedOperationException if the bucket is on a device whose allocator does not
   *     convert its elements
   */
  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    Tensor tensor = bucket.tensor();
    if (tensor.dtype() != DType.FLOAT32 && tensor.dtype() != DType.FLOAT64) {
      group.allReduce(tensor, bucket.mean());
      return;
    }
    Half compressed = bucket.state(this, half);
    if (tensor.device().isCpu()) {
      compressed.conversion().narrow(tensor, compressed.tensor());
      group.allReduce(compressed.tensor(), bucket.mean());
      compressed.conversion().widen(compressed.tensor(), tensor);
    } else {
      bucket.allocator().convert(compressed.tensor(), tensor);
      group.allReduce(compressed.tensor(), bucket.mean());
      bucket.allocator().convert(tensor, compressed.tensor());
    }
  }

  /** A bucket's elements in 16 bits, and their converter. */
  private record Half(Tensor tensor, HalfConversion conversion) {}
}
