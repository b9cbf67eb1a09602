package dev.tutti.interop.pytorch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The lines of a world with the checksums that they must leave, by rank. In a file, each row holds
 * the text of a line and its checksums, separated by tabs.
 *
 * @param entries the lines in the order in which all ranks run them
 */
record Plan(List<Entry> entries) {
  /**
   * A line.
   *
   * @param line the line to run
   * @param checksums the checksums by rank of the world, as {@link Expected} computes them
   */
  record Entry(Line line, List<String> checksums) {}

  /**
   * Creates the plan of a world.
   *
   * @param lines the lines
   * @param size number of ranks
   */
  static Plan of(List<String> lines, int size) {
    List<Integer> all = IntStream.range(0, size).boxed().toList();
    Map<Integer, List<Integer>> groups = new HashMap<>(Map.of(0, all));
    List<Entry> entries = new ArrayList<>();
    for (String text : lines) {
      Line line = new Line(text);
      if (line.op().equals("newgroup")) {
        groups.put(groups.size(), line.ranks());
      }
      List<Integer> members = groups.getOrDefault(line.group(), List.of());
      entries.add(
          new Entry(
              line,
              all.stream()
                  .map(
                      rank ->
                          members.contains(rank)
                              ? Expected.checksum(line, members.indexOf(rank), members.size())
                              : Expected.NOTHING)
                  .toList()));
    }
    return new Plan(entries);
  }

  /**
   * Reads a plan.
   *
   * @param file a file written by {@link #write}
   */
  static Plan read(Path file) throws IOException {
    return new Plan(
        Files.readAllLines(file).stream()
            .map(row -> List.of(row.split("\t")))
            .map(cells -> new Entry(new Line(cells.getFirst()), cells.subList(1, cells.size())))
            .toList());
  }

  /**
   * Writes the plan.
   *
   * @param file the file, which is replaced
   */
  void write(Path file) throws IOException {
    Files.write(
        file,
        entries.stream()
            .map(entry -> entry.line() + "\t" + String.join("\t", entry.checksums()))
            .toList());
  }

  /** Returns the number of ranks. */
  int size() {
    return entries.getFirst().checksums().size();
  }
}
