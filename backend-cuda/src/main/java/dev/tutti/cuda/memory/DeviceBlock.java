package dev.tutti.cuda.memory;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** A part of a segment of device memory. {@link DeviceAllocator} guards its state. */
public final class DeviceBlock {
  final Segment segment;
  final long address;
  long bytes;
  boolean free;
  @Nullable DeviceBlock previous;
  @Nullable DeviceBlock next;
  private BlockStream[] otherStreams = {};

  DeviceBlock(Segment segment, long address, long bytes) {
    this.segment = segment;
    this.address = address;
    this.bytes = bytes;
  }

  /** Returns the address of the block. */
  public long address() {
    return address;
  }

  /** Returns the size of the block in bytes, which may be larger than requested. */
  public long bytes() {
    return bytes;
  }

  /** Returns the address of the allocation from which the block was cut. */
  public long segmentAddress() {
    return segment.address;
  }

  /** Returns the size in bytes of the allocation from which the block was cut. */
  public long segmentBytes() {
    return segment.bytes;
  }

  void useOn(BlockStream stream) {
    if (stream.equals(segment.stream)) {
      return;
    }
    for (BlockStream known : otherStreams) {
      if (known.equals(stream)) {
        return;
      }
    }
    otherStreams = Arrays.copyOf(otherStreams, otherStreams.length + 1);
    otherStreams[otherStreams.length - 1] = stream;
  }

  /**
   * Takes the streams that the next user must wait for: the other streams, and the block's own
   * stream if it may be destroyed, since its ordering is then lost.
   */
  BlockStream[] takeStreams() {
    BlockStream[] taken = otherStreams;
    otherStreams = new BlockStream[0];
    if (segment.stream.isForeign()) {
      taken = Arrays.copyOf(taken, taken.length + 1);
      taken[taken.length - 1] = segment.stream;
    }
    return taken;
  }

  /**
   * A piece of memory obtained from the driver in one call. All its blocks belong to one stream.
   */
  static final class Segment {
    final long address;
    final long bytes;
    final BlockStream stream;
    final boolean small;

    Segment(long address, long bytes, BlockStream stream, boolean small) {
      this.address = address;
      this.bytes = bytes;
      this.stream = stream;
      this.small = small;
    }
  }
}
