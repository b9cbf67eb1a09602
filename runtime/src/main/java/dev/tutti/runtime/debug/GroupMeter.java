package dev.tutti.runtime.debug;

import dev.tutti.GroupListener;
import java.util.Map;

/** Has the numbers of one group of a rank. Any thread may call it. */
public interface GroupMeter {
  /** Returns the name of the group; no two open ones have the same. */
  String group();

  /** Has a listener hear of operations from now on. */
  void addListener(GroupListener listener);

  /** Returns the number of the last collective. */
  long lastCollective();

  /** Returns how many operations have not ended. */
  int pending();

  /** Returns for how many seconds the first of those has waited. */
  double waitedSeconds();

  /** Tells whether the group has failed. */
  boolean hasFailed();

  /** Returns how many collectives took each path. */
  Map<String, Long> paths();
}
