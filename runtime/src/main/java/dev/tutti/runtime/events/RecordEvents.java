package dev.tutti.runtime.events;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;

/** Writes the flight records of the ranks of this process whenever a recording ends a chunk. */
final class RecordEvents {
  /*
   * Registering a periodic event starts the JDK's recorder, which takes up to half a second.
   * Registration therefore waits until something else has started the recorder, perhaps while the
   * source is removed: the one that comes last then takes the event back. The JDK keeps what is
   * registered, and with it the class loader, so nothing is registered without a source.
   */
  private final Map<RecordSource, Writer> writers = new ConcurrentHashMap<>();

  void add(RecordSource source) {
    Writer writer = new Writer(source);
    writers.put(source, writer);
    FlightRecorder.addListener(writer);
  }

  void remove(RecordSource source) {
    Writer writer = writers.remove(source);
    if (writer != null) {
      writer.end();
    }
  }

  private static final class Writer implements FlightRecorderListener, Runnable {
    private final RecordSource source;
    private volatile boolean ended;

    Writer(RecordSource source) {
      this.source = source;
    }

    @Override
    public void recorderInitialized(FlightRecorder recorder) {
      FlightRecorder.addPeriodicEvent(FlightRecordEvent.class, this);
      if (ended) {
        FlightRecorder.removePeriodicEvent(this);
      }
    }

    void end() {
      ended = true;
      FlightRecorder.removeListener(this);
      FlightRecorder.removePeriodicEvent(this);
    }

    @Override
    public void run() {
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
