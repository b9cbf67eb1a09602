package dev.tutti.runtime.record;

import dev.tutti.json.Json;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Writes the flight record of a rank to files: a pickle for PyTorch's {@code torchfrtrace}, and the
 * whole record as JSON.
 */
public final class RecordFiles {
  /*
   * PyTorch's tool reads every file in a folder whose name is a prefix and a rank, so the JSON file
   * has a different name. The tool takes messages for collectives of the whole group and reports
   * them as mismatches. They are therefore only in the JSON file, as are operations for which the
   * tool has no name.
   */
  private RecordFiles() {}

  /**
   * Writes both files, replacing older ones. Only the user of this process can read them.
   *
   * @param prefix the prefix of the pickle's path, before the rank
   * @param rank the rank of the process
   * @param forTorch the part of the record that PyTorch's tool reads
   * @param record the whole record
   * @return the files
   */
  public static List<Path> write(
      Path prefix, int rank, Map<String, Object> forTorch, Map<String, Object> record)
      throws IOException {
    Path folder = prefix.toAbsolutePath().getParent();
    if (folder == null) {
      throw new IOException("no parent folder: " + prefix);
    }
    PrivateFiles.createFolders(folder);
    Path pickle = folder.resolve(String.valueOf(prefix.getFileName()) + rank);
    Path json = folder.resolve("flight-record-" + rank + ".json");
    PrivateFiles.replace(pickle, PickleWriter.write(forTorch));
    PrivateFiles.replace(json, Json.write(record).getBytes(StandardCharsets.UTF_8));
    return List.of(pickle, json);
  }
}
