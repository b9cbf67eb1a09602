package dev.tutti.runtime.debug;

import dev.tutti.GroupListener;
import java.util.Map;

/** The metrics of one group of a rank. Any thread may call its methods. */
public interface GroupMeter {
  /** Returns the name of the group; no two open groups have the same name. */
  String group();

  /** Adds a listener that is notified of operations from now on. */
  void addListener(GroupListener listener);

  /** Returns the number of the last collective. */
  long lastCollective();

  /** Returns how many operations have not ended. */
  int pending();

  /** Returns how many seconds the oldest of those has waited. */
  double waitedSeconds();

  /** Returns whether the group has failed. */
  boolean hasFailed();

  /** Returns how many collectives took each path. */
  Map<String, Long> paths();
}
