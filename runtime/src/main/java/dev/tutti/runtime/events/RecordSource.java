package dev.tutti.runtime.events;

/** The flight records of a rank. Any thread may call its methods. */
public interface RecordSource {
  /** Passes on everything in the records, group by group, oldest first. */
  void forEach(Sink sink);

  /** A receiver of the contents of flight records. */
  interface Sink {
    /**
     * Takes one operation, or an empty entry for a group that has none.
     *
     * @param group the name of the group
     * @param globalRank this rank among all ranks
     * @param ranks the group's members by their ranks among all, as a list in brackets
     * @param entry the operation as JSON, or empty
     */
    void accept(String group, int globalRank, String ranks, String entry);
  }
}
