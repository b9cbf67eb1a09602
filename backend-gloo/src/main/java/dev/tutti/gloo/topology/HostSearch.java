package dev.tutti.gloo.topology;

import dev.tutti.RendezvousException;
import dev.tutti.spi.BackendContext;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Finds the ranks that see the same directory of an in-memory file system and may therefore share
 * memory: each rank leaves a file there and looks for the files of the others. Closing removes this
 * rank's file, and must wait until all ranks have looked.
 *
 * @param probe this rank's file; null if it shares no memory
 * @param leader the lowest rank that this one sees, possibly itself
 * @param members the ranks that a leader sees, itself first
 * @param problem why this rank cannot share memory; empty if nothing went wrong
 */
@SuppressWarnings("ArrayRecordComponent") // made, read and thrown away within the rendezvous
public record HostSearch(@Nullable HostProbeFile probe, int leader, int[] members, String problem)
    implements AutoCloseable {
  private static final String KEY = "host/beacon";

  /**
   * Looks for other ranks; all ranks of a group must call this.
   *
   * @param context the rank, its group and the store
   * @param directory a directory of an in-memory file system
   * @param budget the number of bytes to share, or 0 for none; ranks with a different budget are
   *     not found
   * @param twoLevel whether to share memory even if not all ranks of the group can
   * @param deadline the deadline for the other ranks' offers, in terms of the group's clock
   * @throws RendezvousException naming a rank that published something else, or the ranks that
   *     published nothing in time
   */
  public static HostSearch begin(
      BackendContext context, Path directory, long budget, boolean twoLevel, long deadline) {
    HostProbeFile probe = null;
    String problem = "";
    try {
      probe = budget == 0 ? null : HostProbeFile.light(directory);
    } catch (IOException e) {
      problem = e.toString();
    }
    try {
      int rank = context.rank();
      HostOffer own = new HostOffer(probe == null ? "" : probe.name(), budget, twoLevel);
      List<HostOffer> offers = exchange(context, own, deadline);
      int[] seen = new int[context.size()];
      int found = 0;
      boolean allTwoLevel = true;
      for (int peer = 0; peer < seen.length; peer++) {
        HostOffer offer = offers.get(peer);
        allTwoLevel &= offer.twoLevel();
        if (peer == rank || (probe != null && isSeen(offer, budget, directory))) {
          seen[found++] = peer;
        } else if (probe != null && problem.isEmpty() && !offer.probe().isEmpty()) {
          String other = "rank " + peer + " of this host runs as another user, ";
          problem = probe.otherUserOf(offer.probe()).map(other::concat).orElse("");
        }
      }
      boolean enough = found == seen.length || allTwoLevel;
      int[] members = enough && seen[0] == rank ? Arrays.copyOf(seen, found) : new int[] {rank};
      return new HostSearch(probe, enough ? seen[0] : rank, members, problem);
    } catch (RuntimeException e) {
      if (probe != null) {
        probe.close();
      }
      throw e;
    }
  }

  private static List<HostOffer> exchange(BackendContext context, HostOffer own, long deadline) {
    List<byte[]> published =
        context
            .bootstrap()
            .allGather(KEY, own.toBytes(), "publish an offer to share memory", deadline);
    List<HostOffer> offers = new ArrayList<>(published.size());
    for (int peer = 0; peer < published.size(); peer++) {
      offers.add(read(context, peer, published.get(peer)));
    }
    return offers;
  }

  private static HostOffer read(BackendContext context, int peer, byte[] bytes) {
    try {
      return HostOffer.read(bytes);
    } catch (IllegalArgumentException e) {
      throw unreadable(context, peer, e);
    }
  }

  /** Returns the exception to throw if a rank published data that no Tutti rank publishes. */
  public static RendezvousException unreadable(
      BackendContext context, int peer, IllegalArgumentException cause) {
    return new RendezvousException(
        "rank "
            + context.rank()
            + " of group "
            + context.group()
            + " cannot read what rank "
            + peer
            + " published to share memory: "
            + cause.getMessage(),
        cause);
  }

  private static boolean isSeen(HostOffer offer, long budget, Path directory) {
    return !offer.probe().isEmpty()
        && offer.budget() == budget
        && HostProbeFile.isSeen(offer.probe(), directory);
  }

  @Override
  public void close() {
    if (probe != null) {
      probe.close();
    }
  }
}
