package dev.tutti.gloo.host;

import dev.tutti.spi.BackendContext;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Finds the ranks that see the same directory of a file system in memory, and so may share memory:
 * each leaves a file there and looks for those of the others. Closing removes the own one, to be
 * done when all have looked.
 */
final class HostSearch implements AutoCloseable {
  private static final String KEY = "host/beacon/";

  /** What a rank publishes: the name of its file, or nothing, and its settings. */
  private record Offer(String beacon, long budget, boolean twoLevel) {
    static Offer read(byte[] bytes) {
      String[] words = new String(bytes, StandardCharsets.UTF_8).split(" ", -1);
      if (words.length != 3) {
        throw new IllegalArgumentException("not an offer to share memory");
      }
      return new Offer(words[0], Long.parseLong(words[1]), words[2].equals("two-level"));
    }

    byte[] toBytes() {
      String text = beacon + " " + budget + " " + (twoLevel ? "two-level" : "one-level");
      return text.getBytes(StandardCharsets.UTF_8);
    }
  }

  private final @Nullable Beacon beacon;
  private final int leader;
  private final int[] members;
  private final String problem;

  private HostSearch(@Nullable Beacon beacon, int leader, int[] members, String problem) {
    this.beacon = beacon;
    this.leader = leader;
    this.members = members;
    this.problem = problem;
  }

  /**
   * Looks for others; all ranks of a group do.
   *
   * @param context which rank of which group, and its store
   * @param directory of a file system in memory
   * @param budget bytes to share, 0 for none; ranks with another one are not found
   * @param twoLevel whether to share also where not all ranks of the group can
   * @param timeout for the offers of the others
   */
  static HostSearch begin(
      BackendContext context, Path directory, long budget, boolean twoLevel, Duration timeout) {
    Beacon beacon = null;
    String problem = "";
    try {
      beacon = budget == 0 ? null : Beacon.light(directory);
    } catch (IOException e) {
      problem = e.toString();
    }
    try {
      int rank = context.rank();
      Offer own = new Offer(beacon == null ? "" : beacon.name(), budget, twoLevel);
      context.store().set(KEY + rank, own.toBytes());
      List<String> keys = IntStream.range(0, context.size()).mapToObj(peer -> KEY + peer).toList();
      List<Offer> offers =
          context.store().multiGet(keys, timeout).stream().map(Offer::read).toList();
      int[] seen =
          beacon == null
              ? new int[] {rank}
              : IntStream.range(0, offers.size())
                  .filter(peer -> peer == rank || isSeen(offers.get(peer), budget, directory))
                  .toArray();
      boolean enough = seen.length == context.size() || offers.stream().allMatch(Offer::twoLevel);
      int[] members = enough && seen[0] == rank ? seen : new int[] {rank};
      return new HostSearch(beacon, enough ? seen[0] : rank, members, problem);
    } catch (RuntimeException e) {
      if (beacon != null) {
        beacon.close();
      }
      throw e;
    }
  }

  private static boolean isSeen(Offer offer, long budget, Path directory) {
    return !offer.beacon.isEmpty()
        && offer.budget == budget
        && Beacon.isSeen(offer.beacon, directory);
  }

  /** Returns the lowest rank that this one sees, maybe itself. */
  int leader() {
    return leader;
  }

  /** Returns the ranks that a leader sees, itself first. */
  int[] members() {
    return members.clone();
  }

  /** Returns why this rank cannot share memory, empty where nothing went wrong. */
  String problem() {
    return problem;
  }

  @Override
  public void close() {
    if (beacon != null) {
      beacon.close();
    }
  }
}
