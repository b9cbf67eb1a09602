package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.spi.DeviceTensors;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The memory of the buckets of a plan to which all ranks can write, on each device or on none. */
final class SharedBuckets implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(SharedBuckets.class.getName());
  private static final Duration PATIENCE = Duration.ofSeconds(5);
  private static final long ALIGNMENT = 256;

  private final Map<Device, Part> parts = new HashMap<>();

  /** The memory of one device, of which some is used. */
  private static final class Part {
    private final SymmetricMemory memory;
    private final DeviceTensors streams;
    private long used;

    Part(SymmetricMemory memory, DeviceTensors streams) {
      this.memory = memory;
      this.streams = streams;
    }

    Tensor take(DType dtype, long numel) {
      Tensor next = memory.buffer(memory.rank(), dtype, used, numel);
      used += rounded(next.byteSize());
      return next;
    }
  }

  /**
   * Allocates memory for a plan, if the allocator has such; all ranks must call this together.
   *
   * @param group the reducer's group
   * @param allocator the allocator of the buckets
   * @param plan for each bucket, the indices of its parameters
   * @param list the parameters
   */
  static SharedBuckets of(
      ProcessGroup group, BucketAllocator allocator, List<List<Integer>> plan, ParameterList list) {
    Map<Device, Long> sizes = new LinkedHashMap<>();
    for (List<Integer> indices : plan) {
      Tensor first = list.get(indices.getFirst());
      if (!first.device().isCpu()) {
        long bytes = list.numel(indices) * first.dtype().byteSize();
        sizes.merge(first.device(), rounded(bytes), Long::sum);
      }
    }
    SharedBuckets made = new SharedBuckets();
    try {
      sizes.forEach((device, bytes) -> made.add(group, allocator, device, bytes));
      return made;
    } catch (RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }

  private void add(ProcessGroup group, BucketAllocator allocator, Device device, long bytes) {
    DeviceTensors streams = allocator.streams(device).orElse(null);
    if (bytes > 0 && streams != null) {
      allocator
          .allocateShared(group, device, bytes)
          .ifPresent(memory -> parts.put(device, new Part(memory, streams)));
    }
  }

  private static long rounded(long bytes) {
    return Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
  }

  boolean isEmpty() {
    return parts.isEmpty();
  }

  /** Returns memory for the next bucket of a device, or null if it is not to be shared. */
  @Nullable Tensor take(Device device, DType dtype, long numel) {
    Part part = parts.get(device);
    return part == null || numel == 0 ? null : part.take(dtype, numel);
  }

  /**
   * Frees the memory once the work in the calling thread's current streams is done. Waits a few
   * seconds for that, and otherwise leaves the memory until the group is closed.
   */
  @Override
  public void close() {
    parts.forEach(SharedBuckets::free);
    parts.clear();
  }

  private static void free(Device device, Part part) {
    try {
      part.streams.currentStream(device).await(PATIENCE);
      part.memory.close();
    } catch (TuttiException | IllegalStateException e) {
      LOG.log(Level.WARNING, "buckets on " + device + " stay until the group is closed", e);
    }
  }
}
