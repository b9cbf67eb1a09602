package dev.tutti.runtime.group;

import dev.tutti.Store;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.runtime.membership.Membership;
import java.lang.System.Logger.Level;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Deletes what earlier generations left in the store, once the next one is set up. */
final class OldKeys {
  /*
   * All members are in the generation, so nobody reads what belongs to groups, changes and questions
   * before it, but for processes that were left out, which find nothing where they would find that
   * others do not come. What members write late, such as that they closed the group before, is
   * deleted after the next change; so are the keys of that group's backends, which may close after
   * this. Of the log, the entries since the generation before remain, since the thread that reads it
   * may lag behind. Keys of the program remain.
   *
   * A later change may have begun already, so only what is older than this generation is deleted.
   */
  private static final System.Logger LOG = System.getLogger(OldKeys.class.getName());
  private static final Pattern KEY = Pattern.compile("([a-z]+)/([^/]*)(?:/.*)?");
  private static final Pattern GENERATION = Pattern.compile("0~(\\d+)(?:\\..*)?");

  private final JobStores stores;
  private final Membership members;
  private final @Nullable Membership before;
  private final long open;

  /**
   * Prepares to delete keys.
   *
   * @param members the members as the generation began
   * @param before the members as the generation before began; null if that is not known
   * @param open the generation whose group this one replaces, which may still be open
   */
  OldKeys(JobStores stores, Membership members, @Nullable Membership before, long open) {
    this.stores = stores;
    this.members = members;
    this.before = before;
    this.open = open;
  }

  /** Deletes the keys, unless the store does not answer. */
  void delete() {
    try {
      long first = firstOfLog();
      for (String key : stores.own.listKeys()) {
        if (isOld(key, first)) {
          boolean _ = stores.own.deleteKey(key);
        }
      }
      for (String key : stores.root.listKeys()) {
        if (isOfOldBackend(key)) {
          boolean _ = stores.root.deleteKey(key);
        }
      }
    } catch (RuntimeException e) {
      LOG.log(Level.DEBUG, "cannot delete the keys of earlier generations: {0}", e);
    }
  }

  private long firstOfLog() {
    Store own = stores.own;
    if (before != null && before.generation() > 0) {
      boolean _ = LogStart.after(before).write(own);
    }
    return LogStart.read(own).first();
  }

  private boolean isOld(String key, long first) {
    Matcher parts = KEY.matcher(key);
    if (!parts.matches()) {
      return false;
    }
    String of = parts.group(2);
    return switch (parts.group(1)) {
      case "group", "progress", "closed" -> generationOf(of) < members.generation();
      case "change", "answer" -> isNumber(of) && Long.parseLong(of) < members.generation();
      case "event" -> isNumber(of) && Long.parseLong(of) < first;
      // A process that joins finds by the first of these that the job has begun.
      case "joined" -> !of.equals("0") && isOfGone(of);
      case "left" -> isOfGone(of);
      default -> false;
    };
  }

  private static boolean isNumber(String text) {
    return text.matches("\\d{1,18}");
  }

  private boolean isOfGone(String number) {
    return isNumber(number) && members.isGone(Integer.parseInt(number));
  }

  private static long generationOf(String group) {
    Matcher name = GENERATION.matcher(group);
    return name.matches() ? Long.parseLong(name.group(1)) : 0;
  }

  /** Returns whether a key is one of a backend of a group that all members have closed. */
  private boolean isOfOldBackend(String key) {
    int end = key.indexOf("//");
    return end > 0 && generationOf(key.substring(0, end)) < open;
  }
}
