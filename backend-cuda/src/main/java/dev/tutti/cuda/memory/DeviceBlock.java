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
    return segment.stream.handle();
  }

  /** Returns where the allocation begins that the block was cut from. */
  public long segmentAddress() {
    return segment.address;
  }

  /** Returns how long the allocation is that the block was cut from, in bytes. */
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
   * Takes the streams that the next user has to wait for: the other ones, and the block's own if
   * that may be destroyed, as its order is lost then.
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

  /** What the driver gave at once. All its blocks belong to one stream. */
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
