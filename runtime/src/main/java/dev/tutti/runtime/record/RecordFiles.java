package dev.tutti.runtime.record;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;

/**
 * Writes the flight record of a rank to files: a pickle for PyTorch's {@code torchfrtrace}, and all
 * of it as JSON.
 */
public final class RecordFiles {
  /*
   * PyTorch's tool reads every file of a folder whose name is a prefix and a rank, so that of the JSON
   * file is another one. It takes messages for collectives of the whole group and reports them as
   * mismatches, so they are in the JSON file alone, as are operations that it has no name for.
   */
  private RecordFiles() {}

  /**
   * Writes both, in place of older ones.
   *
   * @param prefix of the pickle's path, before the rank
   * @param rank of the process
   * @param forTorch what PyTorch's tool knows of the record
   * @param record all of it
   * @return the files
   */
  public static List<Path> write(
      Path prefix, int rank, Map<String, Object> forTorch, Map<String, Object> record)
      throws IOException {
    Path folder = prefix.toAbsolutePath().getParent();
    if (folder == null) {
      throw new IOException("no folder: " + prefix);
    }
    Files.createDirectories(folder);
    Path pickle = folder.resolve(String.valueOf(prefix.getFileName()) + rank);
    Path json = folder.resolve("flight-record-" + rank + ".json");
    replace(pickle, PickleWriter.write(forTorch));
    replace(json, JsonWriter.write(record).getBytes(StandardCharsets.UTF_8));
    return List.of(pickle, json);
  }

  private static void replace(Path file, byte[] bytes) throws IOException {
    Path whole = file.resolveSibling("." + file.getFileName() + ".tmp");
    Files.write(whole, bytes);
    Files.move(whole, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }
}
