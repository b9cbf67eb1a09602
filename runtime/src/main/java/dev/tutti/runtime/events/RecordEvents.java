package dev.tutti.runtime.events;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jfr.FlightRecorder;

/** Writes the flight records of all ranks of this process whenever a recording ends a chunk. */
final class RecordEvents {
  private final Set<RecordSource> sources = ConcurrentHashMap.newKeySet();

  /** Begins to write; starts the JDK's recorder if it is not running. */
  void register() {
    FlightRecorder.addPeriodicEvent(FlightRecordEvent.class, this::write);
  }

  void add(RecordSource source) {
    sources.add(source);
  }

  void remove(RecordSource source) {
    sources.remove(source);
  }

  private void write() {
    for (RecordSource source : sources) {
      source.forEach(
          (group, globalRank, ranks, entry) -> {
            FlightRecordEvent event = new FlightRecordEvent();
            event.group = group;
            event.globalRank = globalRank;
            event.ranks = ranks;
            event.entry = entry;
            event.commit();
          });
    }
  }
}
