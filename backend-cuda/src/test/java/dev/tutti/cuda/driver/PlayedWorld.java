package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/** The state that the ranks of a fake communicator share. */
final class PlayedWorld {
  final int size;
  private final Set<Integer> joined = ConcurrentHashMap.newKeySet();
  private final Map<Long, PlayedMeeting> meetings = new ConcurrentHashMap<>();
  private final Map<String, ConcurrentLinkedQueue<PlayedMessages.Sent>> messages =
      new ConcurrentHashMap<>();
  private final List<Map<Integer, Integer>> splits = new ArrayList<>();
  private final Map<String, PlayedWorld> parts = new ConcurrentHashMap<>();
  private @Nullable PlayedWorld blocking;
  private @Nullable Boolean shares;

  PlayedWorld(int size) {
    this.size = size;
  }

  void join(int rank) {
    assertThat(joined.add(rank)).as("rank %d comes once", rank).isTrue();
  }

  /** Returns whether all ranks have joined. */
  boolean isComplete() {
    return joined.size() == size;
  }

  /**
   * Checks that all ranks agree on whether communicators created from this one share its resources.
   */
  synchronized void requireAlike(boolean own) {
    assertThat(shares == null ? own : shares).as("shares on all ranks").isEqualTo(own);
    shares = own;
  }

  synchronized boolean isShared() {
    return shares == null || shares;
  }

  /**
   * Returns the colors of a split, by rank, of the ranks that have joined it; callers may add to
   * them.
   */
  synchronized Map<Integer, Integer> split(int number) {
    while (splits.size() <= number) {
      splits.add(new ConcurrentHashMap<>());
    }
    return splits.get(number);
  }

  /** Returns the world of the communicators that a split creates from the ranks of one color. */
  PlayedWorld part(int split, int color, int ranks) {
    return parts.computeIfAbsent(split + "/" + color, key -> new PlayedWorld(ranks));
  }

  /** Returns the world of the communicators whose calls block. */
  synchronized PlayedWorld blocking() {
    if (blocking == null) {
      blocking = new PlayedWorld(size);
    }
    return blocking;
  }

  PlayedMeeting meeting(long number) {
    return meetings.computeIfAbsent(number, key -> new PlayedMeeting(size));
  }

  /** Returns the messages in transit from one rank to another. */
  ConcurrentLinkedQueue<PlayedMessages.Sent> messages(int from, int to) {
    return messages.computeIfAbsent(from + ">" + to, key -> new ConcurrentLinkedQueue<>());
  }
}
