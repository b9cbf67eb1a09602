package dev.tutti.runtime.debug;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.util.List;

/** Has what a debug server shows of a rank. Any thread may call it. */
public interface DebugSource {
  /** Returns this rank among all. */
  int rank();

  /** Returns the number of all ranks. */
  int size();

  /** Returns where it stands, as JSON. */
  String status();

  /** Returns the flight records of its groups, as JSON. */
  String flightRecord();

  /** Returns the settings of this rank. */
  Settings settings();

  /** Returns what settings there are. */
  List<Setting<?>> declared();

  /** Returns its open groups. */
  List<GroupMeter> groups();
}
