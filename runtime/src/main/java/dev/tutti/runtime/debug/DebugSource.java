package dev.tutti.runtime.debug;

import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.view.JobView;
import java.util.List;

/** The information about a rank that a debug server shows. Any thread may call its methods. */
public interface DebugSource {
  /** Returns this rank among all ranks. */
  int rank();

  /** Returns the number of all ranks. */
  int size();

  /** Returns where the rank stands, as JSON. */
  String status();

  /** Returns where all ranks of the job stand; queries them. */
  JobView job();

  /** Returns the flight records of the rank's groups, as JSON. */
  String flightRecord();

  /** Returns the settings of this rank. */
  Settings settings();

  /** Returns the settings that exist. */
  List<Setting<?>> declared();

  /** Returns the open groups of the rank. */
  List<GroupMeter> groups();
}
