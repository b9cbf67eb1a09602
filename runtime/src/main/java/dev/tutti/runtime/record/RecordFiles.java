package dev.tutti.runtime.record;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

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
   * @param prefix folder and begin of the name of the pickle; the rank follows
   * @param rank of the process
   * @param record what to write
   * @param forTorch tells which entries PyTorch's tool knows
   * @return the files
   */
  public static List<Path> write(
      Path prefix, int rank, Map<String, Object> record, Predicate<Map<String, Object>> forTorch)
      throws IOException {
    Path folder = prefix.toAbsolutePath().getParent();
    if (folder == null) {
      throw new IOException("no folder: " + prefix);
    }
    Files.createDirectories(folder);
    Path pickle = folder.resolve(String.valueOf(prefix.getFileName()) + rank);
    Path json = folder.resolve("flight-record-" + rank + ".json");
    Map<String, Object> known = new LinkedHashMap<>(record);
    List<Object> entries = new ArrayList<>();
    for (Object entry : list(record.get("entries"))) {
      if (entry instanceof Map<?, ?> map) {
        @SuppressWarnings("unchecked") // the record is written with texts as keys
        Map<String, Object> fields = (Map<String, Object>) map;
        if (forTorch.test(fields)) {
          entries.add(fields);
        }
      }
    }
    known.put("entries", entries);
    replace(pickle, PickleWriter.write(known));
    replace(json, JsonWriter.write(record).getBytes(StandardCharsets.UTF_8));
    return List.of(pickle, json);
  }

  private static List<?> list(@Nullable Object value) {
    return value instanceof List<?> list ? list : List.of();
  }

  private static void replace(Path file, byte[] bytes) throws IOException {
    Path whole = file.resolveSibling("." + file.getFileName() + ".tmp");
    Files.write(whole, bytes);
    Files.move(whole, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
  }
}
