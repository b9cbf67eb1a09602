package dev.tutti.cuda;

import dev.tutti.TuttiException;
import dev.tutti.cpu.wait.WaitStrategy;
import dev.tutti.cuda.driver.StreamCalls;
import dev.tutti.cuda.memory.PinnedAllocator;
import dev.tutti.cuda.memory.PinnedBlock;
import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;

/**
 * A copier between ordinary host memory and a device. It uses page-locked chunks, with two chunks
 * in flight at a time. The driver's own copy would wait without a deadline for a stream that is
 * held.
 */
final class HostCopies {
  /** The size of a chunk in bytes. */
  static final long CHUNK = 4 << 20;

  private static final int AT_ONCE = 2;
  private static final long SPIN_NANOS = 50_000;
  private static final long PARK_NANOS = 20_000;
  private static final Duration TIMEOUT = Duration.ofMinutes(30);

  private final long stream;
  private final PinnedAllocator pinned;
  private final StreamCalls calls;
  private final long deadline = System.nanoTime() + TIMEOUT.toNanos();

  /**
   * Creates an object that copies in one stream.
   *
   * @param stream the driver's handle of a stream that is not being captured into a graph
   * @param pinned the allocator of the stream's device
   * @param calls the driver's calls
   */
  HostCopies(long stream, PinnedAllocator pinned, StreamCalls calls) {
    this.stream = stream;
    this.pinned = pinned;
    this.calls = calls;
  }

  /** Copies to the device; returns when the source may be modified. */
  void toDevice(long target, MemorySegment source, long bytes) {
    ArrayDeque<Chunk> underWay = new ArrayDeque<>();
    try {
      for (long offset = 0; offset < bytes; offset += CHUNK) {
        if (underWay.size() == AT_ONCE) {
          underWay.removeFirst().await();
        }
        Chunk chunk = new Chunk(offset, Math.min(CHUNK, bytes - offset));
        underWay.addLast(chunk);
        MemorySegment.copy(source, offset, chunk.staging.segment(), 0, chunk.bytes);
        chunk.enqueue(target + offset, chunk.staging.address());
      }
    } finally {
      underWay.forEach(Chunk::free);
    }
  }

  /** Copies to the host; returns when all bytes have arrived. */
  void toHost(MemorySegment target, long source, long bytes) {
    ArrayDeque<Chunk> underWay = new ArrayDeque<>();
    try {
      for (long offset = 0; offset < bytes; offset += CHUNK) {
        if (underWay.size() == AT_ONCE) {
          underWay.removeFirst().awaitInto(target);
        }
        Chunk chunk = new Chunk(offset, Math.min(CHUNK, bytes - offset));
        underWay.addLast(chunk);
        chunk.enqueue(chunk.staging.address(), source + offset);
      }
      while (!underWay.isEmpty()) {
        underWay.removeFirst().awaitInto(target);
      }
    } finally {
      underWay.forEach(Chunk::free);
    }
  }

  /** A part of the bytes, in flight. */
  private final class Chunk {
    private final long offset;
    private final long bytes;
    private final PinnedBlock staging;
    private boolean lost;

    Chunk(long offset, long bytes) {
      this.offset = offset;
      this.bytes = bytes;
      this.staging = pinned.allocate(bytes);
    }

    void enqueue(long target, long source) {
      calls.copy(target, source, bytes, stream);
      // Until the use is recorded, it is unknown when the device is done with the memory.
      lost = true;
      pinned.useOn(staging, stream);
      lost = false;
    }

    /** Waits until the device is done with the chunk, then frees the chunk. */
    void await() {
      try {
        awaitDevice();
      } finally {
        free();
      }
    }

    void awaitInto(MemorySegment target) {
      try {
        awaitDevice();
        MemorySegment.copy(staging.segment(), 0, target, offset, bytes);
      } finally {
        free();
      }
    }

    private void awaitDevice() {
      WaitStrategy wait = WaitStrategy.spinning(SPIN_NANOS, PARK_NANOS, Time.SYSTEM);
      while (!pinned.isIdle(staging)) {
        if (wait.now() - deadline >= 0) {
          throw new TuttiException(
              "a copy in stream 0x%x did not finish within %s minutes"
                  .formatted(stream, TIMEOUT.toMinutes()));
        }
        wait.rest();
      }
    }

    void free() {
      if (!lost) {
        pinned.free(staging);
      }
    }
  }
}
