package dev.tutti.gloo.topology;

import dev.tutti.gloo.shm.ShmFile;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The message with which a leader invites ranks to share memory.
 *
 * @param memory the description from {@link ShmFile#describe()}
 * @param members the leader, then the others, in ascending order
 */
@SuppressWarnings("ArrayRecordComponent") // made, read and thrown away within the rendezvous
public record HostInvitation(String memory, int[] members) {
  /**
   * Reads an invitation.
   *
   * @param bytes the value from the store
   * @param leader the rank that published it
   * @param size the number of ranks of the group
   * @throws IllegalArgumentException if it does not have this form
   */
  public static HostInvitation read(byte[] bytes, int leader, int size) {
    int most = ShmFile.MAX_DESCRIPTION + 1 + RankList.maxLength(size);
    if (bytes.length > most) {
      throw new IllegalArgumentException(bytes.length + " bytes, at most " + most + " expected");
    }
    String text = new String(bytes, StandardCharsets.UTF_8);
    int space = text.lastIndexOf(' ');
    if (space < 0) {
      throw new IllegalArgumentException("not an invitation to share memory");
    }
    int[] members = RankList.split(text.substring(space + 1), leader, size);
    return new HostInvitation(text.substring(0, space), members);
  }

  public byte[] toBytes() {
    return (memory + " " + RankList.join(members)).getBytes(StandardCharsets.UTF_8);
  }

  /** Returns the place of a rank among the members, or -1. */
  public int placeOf(int rank) {
    return Math.max(-1, Arrays.binarySearch(members, rank));
  }
}
