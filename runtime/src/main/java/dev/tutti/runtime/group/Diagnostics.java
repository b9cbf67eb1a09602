package dev.tutti.runtime.group;

import dev.tutti.GroupDiagnostics;
import dev.tutti.json.Json;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Reads what a rank has recorded of a group.
 *
 * @param group the group
 * @param records the records of all groups of the rank
 */
record Diagnostics(Group group, FlightRecords records) implements GroupDiagnostics {
  @Override
  public Map<String, Long> usageByPath() {
    return group.paths.read();
  }

  @Override
  public String flightRecord() {
    records.look();
    return Json.write(records.toMap(List.of(group.flightRecord())));
  }

  @Override
  public List<Path> dumpFlightRecord(Path prefix) {
    try {
      return records.dump(prefix);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
