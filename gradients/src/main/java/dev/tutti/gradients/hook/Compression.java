package dev.tutti.gradients.hook;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.gradients.GradientBucket;
import dev.tutti.gradients.GradientHook;
import java.util.function.Function;

/**
 * Reduces gradients as elements of 16 bits: half the bytes of float32 (c10d: {@code
 * fp16_compress_hook}, {@code bf16_compress_hook}). The sum is made as the backend makes it for
 * that type, in float32 where it can, and is divided before it is rounded.
 *
 * <p>Buckets of float32 and float64 are compressed, others reduced as they are. Buckets lie in host
 * memory; after the first use of a bucket nothing is allocated. Costs two passes over the bucket,
 * and half of its memory.
 */
public final class Compression implements GradientHook {
  private final Function<GradientBucket, Half> half;

  private Compression(DType type) {
    this.half =
        bucket ->
            new Half(Tensor.allocate(type, bucket.tensor().numel()), new HalfConversion(type));
  }

  /**
   * Creates a hook that sends float16: 11 bits of precision, numbers up to 65,504; larger ones
   * become infinite.
   */
  public static Compression float16() {
    return new Compression(DType.FLOAT16);
  }

  /** Creates a hook that sends bfloat16: 8 bits of precision, the range of float32. */
  public static Compression bfloat16() {
    return new Compression(DType.BFLOAT16);
  }

  /**
   * {@inheritDoc}
   *
   * @throws UnsupportedOperationException if the bucket is one to compress, on a device
   */
  @Override
  public void reduce(GradientBucket bucket, ProcessGroup group) {
    Tensor tensor = bucket.tensor();
    if (tensor.dtype() != DType.FLOAT32 && tensor.dtype() != DType.FLOAT64) {
      group.allReduce(tensor, bucket.mean());
      return;
    }
    if (!tensor.device().isCpu()) {
      throw new UnsupportedOperationException(
          "gradients are compressed on the host, but these are on " + tensor.device());
    }
    Half compressed = bucket.state(this, half);
    compressed.conversion().narrow(tensor, compressed.tensor());
    group.allReduce(compressed.tensor(), bucket.mean());
    compressed.conversion().widen(compressed.tensor(), tensor);
  }

  /** A bucket's elements in 16 bits, and what converts them. */
  private record Half(Tensor tensor, HalfConversion conversion) {}
}
