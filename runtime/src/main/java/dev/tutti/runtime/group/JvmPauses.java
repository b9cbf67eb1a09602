package dev.tutti.runtime.group;

import com.sun.management.GarbageCollectorMXBean;
import com.sun.management.GcInfo;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Finds the last pauses of this JVM, as its garbage collectors remember them. */
final class JvmPauses {
  /** Collectors whose collections last longer than the pauses in them. */
  private static final String CYCLES = "Cycles";

  private JvmPauses() {}

  /** Returns the last pause of each collector, as plain values; none if the JDK cannot say. */
  static List<Map<String, Object>> list() {
    try {
      return Beans.list();
    } catch (LinkageError e) {
      return List.of();
    }
  }

  /**
   * Loaded only when needed, so that the module {@code jdk.management} may be missing without harm.
   */
  private static final class Beans {
    static List<Map<String, Object>> list() {
      long start = ManagementFactory.getRuntimeMXBean().getStartTime();
      List<Map<String, Object>> all = new ArrayList<>();
      for (GarbageCollectorMXBean bean :
          ManagementFactory.getPlatformMXBeans(GarbageCollectorMXBean.class)) {
        GcInfo last = bean.getName().endsWith(CYCLES) ? null : bean.getLastGcInfo();
        if (last != null && last.getDuration() > 0) {
          all.add(
              Map.of(
                  "what", "GC pause (" + bean.getName() + ")",
                  "start_ns", (start + last.getStartTime()) * 1_000_000,
                  "end_ns", (start + last.getEndTime()) * 1_000_000));
        }
      }
      return all;
    }
  }
}
