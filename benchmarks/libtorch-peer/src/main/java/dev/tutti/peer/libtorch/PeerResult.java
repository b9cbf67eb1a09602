package dev.tutti.peer.libtorch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What a peer reports for one line of its script.
 *
 * @param ok true for OK, false for ERROR
 * @param line number of the line in the script, from 1; 0 for the setup
 * @param op operation of the line; empty in an error
 * @param crc CRC-32 of the result bytes in hexadecimal, {@code 00000000} for no data; empty in an
 *     error
 * @param values the first components of the result, at most four
 * @param attributes {@code name=value} facts in addition to the data, such as {@code source}
 * @param message the error, empty if ok
 */
public record PeerResult(
    boolean ok,
    int line,
    String op,
    String crc,
    List<String> values,
    Map<String, String> attributes,
    String message) {

  /** Copies the collections. */
  public PeerResult {
    values = List.copyOf(values);
    attributes = Map.copyOf(attributes);
  }

  /**
   * Returns whether a line of output is a result.
   *
   * @param text line of a peer's standard output
   * @return false for the log output of libtorch and the JVM
   */
  public static boolean isResult(String text) {
    return text.startsWith("OK ") || text.startsWith("ERROR ");
  }

  /**
   * Parses a line of output.
   *
   * @param text a line for which {@link #isResult} holds
   * @return the result
   */
  public static PeerResult parse(String text) {
    String[] tokens = text.split(" ");
    int line = Integer.parseInt(tokens[1]);
    if (tokens[0].equals("ERROR")) {
      String message = text.substring(tokens[0].length() + tokens[1].length() + 2);
      return new PeerResult(false, line, "", "", List.of(), Map.of(), message);
    }
    List<String> values = new ArrayList<>();
    Map<String, String> attributes = new HashMap<>();
    for (int i = 4; i < tokens.length; i++) {
      int equals = tokens[i].indexOf('=');
      if (equals > 0) {
        attributes.put(tokens[i].substring(0, equals), tokens[i].substring(equals + 1));
      } else {
        values.add(tokens[i]);
      }
    }
    return new PeerResult(true, line, tokens[2], tokens[3], values, attributes, "");
  }

  /** Writes the result as the line that {@link #parse} reads. */
  @Override
  public String toString() {
    if (!ok) {
      return "ERROR " + line + " " + message;
    }
    StringBuilder text =
        new StringBuilder("OK ").append(line).append(' ').append(op).append(' ').append(crc);
    values.forEach(value -> text.append(' ').append(value));
    attributes.forEach((name, value) -> text.append(' ').append(name).append('=').append(value));
    return text.toString();
  }
}
