package dev.tutti.gloo.topology;

import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.util.stream.IntStream;

/**
 * The message that a rank publishes once it has determined whether it shares memory: a leader
 * publishes which ranks it leads, a follower which rank it follows, and any other rank nothing, or
 * a reason.
 *
 * @param reason why the rank does not share memory, to be reported; empty if there is nothing to
 *     report
 * @param leader the rank that it follows, itself if it leads others, −1 if it does not share memory
 * @param members if it leads, the ranks that it leads, itself first
 */
@SuppressWarnings("ArrayRecordComponent") // made, read and thrown away within the rendezvous
public record HostResult(String reason, int leader, int[] members) {
  private static final int MAX_REASON = 1000;
  private static final String REFUSES = "!";
  private static final String NOTHING = "-";
  private static final String FOLLOWS = "follows ";
  private static final String LEADS = "leads ";

  public static HostResult nothing() {
    return new HostResult("", -1, new int[0]);
  }

  public static HostResult refuses(String why) {
    return new HostResult(
        why.length() <= MAX_REASON ? why : why.substring(0, MAX_REASON), -1, new int[0]);
  }

  public static HostResult follows(int leader) {
    return new HostResult("", leader, new int[0]);
  }

  public static HostResult leads(int[] members) {
    return new HostResult("", members[0], members);
  }

  /** Returns whether the rank follows another one. */
  public boolean follows() {
    return leader >= 0 && members.length == 0;
  }

  /**
   * Reads a result.
   *
   * @param bytes the value from the store
   * @param rank the rank that published it
   * @param size the number of ranks of the group
   * @throws IllegalArgumentException if it does not have this form
   */
  public static HostResult read(byte[] bytes, int rank, int size) {
    // A character takes at most three bytes.
    int most = 3 * MAX_REASON + LEADS.length() + RankList.maxLength(size);
    if (bytes.length > most) {
      throw new IllegalArgumentException(bytes.length + " bytes, at most " + most + " expected");
    }
    String text = new String(bytes, StandardCharsets.UTF_8);
    if (text.equals(NOTHING)) {
      return nothing();
    }
    if (text.startsWith(REFUSES)) {
      return refuses(Printable.line(text.substring(1)));
    }
    if (text.startsWith(FOLLOWS)) {
      return follows(RankList.parse(text.substring(FOLLOWS.length())));
    }
    if (text.startsWith(LEADS)) {
      return leads(RankList.split(text.substring(LEADS.length()), rank, size));
    }
    throw new IllegalArgumentException("not a result of sharing memory");
  }

  public byte[] toBytes() {
    String text;
    if (follows()) {
      text = FOLLOWS + leader;
    } else if (leader >= 0) {
      text = LEADS + RankList.join(members);
    } else {
      text = reason.isEmpty() ? NOTHING : REFUSES + reason;
    }
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Returns, for each rank, the rank that leads it, possibly itself.
   *
   * @param results the results of all ranks
   * @throws IllegalArgumentException if a rank claims to lead one that does not follow it
   */
  public static int[] leaders(HostResult[] results) {
    int[] leaders = IntStream.range(0, results.length).toArray();
    for (HostResult result : results) {
      for (int i = 1; i < result.members.length; i++) {
        int member = result.members[i];
        if (!results[member].follows() || results[member].leader != result.leader) {
          throw new IllegalArgumentException(
              "rank " + result.leader + " leads rank " + member + ", which does not follow it");
        }
        leaders[member] = result.leader;
      }
    }
    return leaders;
  }
}
