package dev.tutti.cuda.memory;

/** A freed block that streams may still use. {@link DeviceAllocator} guards its state. */
final class FreedBlock {
  final DeviceBlock block;
  private final BlockStream[] streams;
  private final long[] events;
  private int left;

  FreedBlock(DeviceBlock block, BlockStream[] streams) {
    this.block = block;
    this.streams = streams;
    this.events = new long[streams.length];
    this.left = streams.length;
    mark();
  }

  /** Records events in the streams that could not be marked before. */
  private void mark() {
    for (int i = 0; i < left; i++) {
      if (events[i] == 0) {
        events[i] = streams[i].tryMark();
      }
    }
  }

  /** Returns, without blocking, whether all streams are done with the block. */
  boolean isDone() {
    mark();
    while (left > 0) {
      int last = left - 1;
      if (events[last] == 0 || !streams[last].isReached(events[last])) {
        return false;
      }
      streams[last].events().release(events[last]);
      left--;
    }
    return true;
  }

  /**
   * Marks the current end of a stream's work, unless that was done before; the stream is not used
   * again.
   *
   * @throws IllegalStateException if the stream is being captured into a graph
   */
  void leave(BlockStream stream) {
    for (int i = 0; i < left; i++) {
      if (events[i] == 0 && streams[i].equals(stream)) {
        events[i] = stream.tryMark();
        if (events[i] == 0) {
          throw new IllegalStateException(
              "cannot record an event in the stream; is it being captured into a graph?");
        }
      }
    }
  }

  /** Releases the events. */
  void release() {
    while (left > 0) {
      left--;
      if (events[left] != 0) {
        streams[left].events().release(events[left]);
      }
    }
  }
}
