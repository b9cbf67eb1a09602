package dev.tutti.runtime.events;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;

/** Writes the flight records of all ranks of this process whenever a recording ends a chunk. */
final class RecordEvents implements FlightRecorderListener {
  /*
   * Registering a periodic event starts the JDK's recorder, which takes up to half a second.
   * Registration therefore waits until something else has started the recorder.
   */
  private final Set<RecordSource> sources = ConcurrentHashMap.newKeySet();

  RecordEvents() {
    FlightRecorder.addListener(this);
  }

  void add(RecordSource source) {
    sources.add(source);
  }

  void remove(RecordSource source) {
    sources.remove(source);
  }

  @Override
  public void recorderInitialized(FlightRecorder recorder) {
    FlightRecorder.addPeriodicEvent(FlightRecordEvent.class, this::write);
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
