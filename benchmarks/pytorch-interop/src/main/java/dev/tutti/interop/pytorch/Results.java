package dev.tutti.interop.pytorch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What a rank wrote.
 *
 * @param checksums the checksums by line number
 * @param errors the errors by line number
 * @param done whether the rank reached its end
 * @param about what the rank reports about itself
 */
record Results(
    Map<Integer, String> checksums, Map<Integer, String> errors, boolean done, String about) {
  /** The last row of a rank that reached its end. */
  static final String DONE = "DONE";

  static String ok(int number, String checksum) {
    return number + "\tOK\t" + checksum;
  }

  static String error(int number, String message) {
    return number + "\tERROR\t" + message.replaceAll("\\s+", " ");
  }

  /**
   * Reads the results of a rank; returns none if it wrote none.
   *
   * @param file the file that the rank wrote
   */
  static Results read(Path file) throws IOException {
    Map<Integer, String> checksums = new HashMap<>();
    Map<Integer, String> errors = new HashMap<>();
    boolean done = false;
    String about = "";
    for (String row : Files.exists(file) ? Files.readAllLines(file) : List.<String>of()) {
      String[] cells = row.split("\t", 3);
      if (row.startsWith("# ")) {
        about = row.substring(2);
      } else if (row.equals(DONE)) {
        done = true;
      } else if (cells.length == 3) {
        (cells[1].equals("OK") ? checksums : errors).put(Integer.parseInt(cells[0]), cells[2]);
      }
    }
    return new Results(checksums, errors, done, about);
  }
}
