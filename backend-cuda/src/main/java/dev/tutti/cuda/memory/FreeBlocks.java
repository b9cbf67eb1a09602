package dev.tutti.cuda.memory;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Free blocks, sorted by stream, kind, and size. */
final class FreeBlocks {
  private static final Comparator<DeviceBlock> BY_SIZE =
      Comparator.<DeviceBlock>comparingLong(block -> block.bytes)
          .thenComparingLong(block -> block.address);

  private final Map<Key, TreeSet<DeviceBlock>> blocks = new HashMap<>();

  private record Key(BlockStream stream, boolean small) {}

  void add(DeviceBlock block) {
    blocks.computeIfAbsent(key(block), key -> new TreeSet<>(BY_SIZE)).add(block);
  }

  void remove(DeviceBlock block) {
    TreeSet<DeviceBlock> sorted = blocks.get(key(block));
    if (sorted != null && sorted.remove(block) && sorted.isEmpty()) {
      blocks.remove(key(block));
    }
  }

  private static Key key(DeviceBlock block) {
    return new Key(block.segment.stream, block.segment.small);
  }

  /** Takes the smallest block that is large enough, or returns null. */
  @Nullable DeviceBlock take(BlockStream stream, boolean small, long bytes) {
    TreeSet<DeviceBlock> sorted = blocks.get(new Key(stream, small));
    if (sorted == null) {
      return null;
    }
    DeviceBlock least = new DeviceBlock(new DeviceBlock.Segment(0, 0, stream, small), 0, bytes);
    DeviceBlock found = sorted.ceiling(least);
    if (found != null) {
      remove(found);
    }
    return found;
  }

  /** Returns the free blocks that span their whole segment. */
  List<DeviceBlock> wholeSegments() {
    List<DeviceBlock> whole = new ArrayList<>();
    for (TreeSet<DeviceBlock> sorted : blocks.values()) {
      for (DeviceBlock block : sorted) {
        if (block.bytes == block.segment.bytes) {
          whole.add(block);
        }
      }
    }
    return whole;
  }
}
