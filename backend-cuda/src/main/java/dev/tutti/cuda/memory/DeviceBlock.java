package dev.tutti.cuda.memory;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Is a part of a segment of device memory. {@link DeviceAllocator} guards its state. */
public final class DeviceBlock {
  final Segment segment;
  final long address;
  long bytes;
  boolean free;
  @Nullable DeviceBlock previous;
  @Nullable DeviceBlock next;
  private long[] otherStreams = {};

  DeviceBlock(Segment segment, long address, long bytes) {
    this.segment = segment;
    this.address = address;
    this.bytes = bytes;
  }

  /** Returns where the block begins. */
  public long address() {
    return address;
  }

  /** Returns how long the block is, which may be more than was asked for. */
  public long bytes() {
    return bytes;
  }

  /** Returns the stream in whose order the block may be used and freed. */
  public long stream() {
    return segment.stream;
  }

  /** Returns where the allocation begins that the block was cut from. */
  public long segmentAddress() {
    return segment.address;
  }

  /** Returns how long the allocation is that the block was cut from, in bytes. */
  public long segmentBytes() {
    return segment.bytes;
  }

  void useOn(long stream) {
    if (stream == segment.stream) {
      return;
    }
    for (long known : otherStreams) {
      if (known == stream) {
        return;
      }
    }
    otherStreams = Arrays.copyOf(otherStreams, otherStreams.length + 1);
    otherStreams[otherStreams.length - 1] = stream;
  }

  long[] takeOtherStreams() {
    long[] taken = otherStreams;
    otherStreams = new long[0];
    return taken;
  }

  /** Is what the driver gave at once. All its blocks belong to one stream. */
  static final class Segment {
    final long address;
    final long bytes;
    final long stream;
    final boolean small;

    Segment(long address, long bytes, long stream, boolean small) {
      this.address = address;
      this.bytes = bytes;
      this.stream = stream;
      this.small = small;
    }
  }
}
