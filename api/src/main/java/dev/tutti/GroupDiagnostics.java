package dev.tutti;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * What a rank has recorded of the operations of a group. Any thread may call any method, also after
 * the group has failed.
 */
public interface GroupDiagnostics {
  /**
   * Returns how many collectives this rank has run so far by each path (c10d: {@code
   * getIntraNodeCommUsageCounter}). A path names the backend, the transport if the backend has
   * several, and the algorithm, as in {@code gloo/sockets/ring} and {@code cuda/one-shot}. A
   * collective is counted once its backend has done or enqueued it; collectives of backends that
   * name no path are not counted.
   *
   * @return a copy, sorted by name
   */
  Map<String, Long> usageByPath();

  /**
   * Returns the latest operations of this rank in this group as JSON text, newest last, with the
   * fields of c10d's flight recorder. Queries the devices first for the operations they have
   * completed, and waits up to two seconds for a driver that hangs.
   */
  String flightRecord();

  /**
   * Writes the latest operations of this rank, in all of its groups, to two files: as a pickle for
   * PyTorch's {@code torchfrtrace}, and as JSON, {@code flight-record-RANK.json} in the same
   * folder. Queries the devices first, as {@link #flightRecord} does.
   *
   * @param prefix the path of the pickle up to the rank
   * @return the files
   * @throws java.io.UncheckedIOException if the files cannot be written
   */
  List<Path> dumpFlightRecord(Path prefix);
}
