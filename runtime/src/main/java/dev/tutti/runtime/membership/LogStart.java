package dev.tutti.runtime.membership;

import dev.tutti.Store;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where the log of a job begins, whose earlier entries were deleted.
 *
 * @param first the place of the first entry that counts; 1 if none was deleted
 * @param members what the entries before it said
 */
public record LogStart(long first, Membership members) {
  /*
   * The key is written before entries are deleted. A process that stood still for generations may
   * find that the place of an entry that it has not read is free again, write there, and read what
   * another such process wrote there. So whoever reads the log, or writes to it, relies on an entry
   * only if the log began no later once it had it. Stores that carry out wills begin at the number
   * in this key, too.
   */
  private static final String KEY = "event/first";

  /** Returns where the log begins now. */
  public static LogStart read(Store store) {
    if (!store.check(List.of(KEY))) {
      return new LogStart(1, new Membership());
    }
    String[] parts = new String(store.get(KEY), StandardCharsets.UTF_8).split("\n", 2);
    return new LogStart(Long.parseLong(parts[0]), Membership.decode(parts[1]));
  }

  /** Returns where a log begins of which some entries are not needed any more. */
  public static LogStart after(Membership members) {
    return new LogStart(members.read() + 1, members);
  }

  /**
   * Lets the log begin here, unless it begins later; entries before that may then be deleted.
   *
   * @return whether it begins here
   */
  public boolean write(Store store) {
    byte[] own = (first + "\n" + members.encode()).getBytes(StandardCharsets.UTF_8);
    while (true) {
      byte @Nullable [] there = store.check(List.of(KEY)) ? store.get(KEY) : null;
      if (there != null && read(there) >= first) {
        return read(there) == first;
      }
      if (store.compareSet(KEY, there, own).stored()) {
        return true;
      }
    }
  }

  private static long read(byte[] value) {
    return Long.parseLong(new String(value, StandardCharsets.UTF_8).split("\n", 2)[0]);
  }
}
