package dev.tutti.runtime.events;

/** Has the flight records of a rank. Any thread may call it. */
public interface RecordSource {
  /** Hands on all that they hold, group by group, oldest first. */
  void forEach(Sink sink);

  /** Takes what flight records hold. */
  interface Sink {
    /**
     * Takes one operation, or of a group without one, none.
     *
     * @param group its name
     * @param globalRank this rank among all
     * @param ranks those of the group among all, as a list in brackets
     * @param entry as JSON, or empty
     */
    void accept(String group, int globalRank, String ranks, String entry);
  }
}
