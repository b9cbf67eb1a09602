package dev.tutti.cli.trace;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Finds the files in folders. */
final class TraceFolders {
  /** More than a record has, but not more than can be read at once. */
  private static final long MOST_BYTES = 256L << 20;

  private TraceFolders() {}

  /**
   * Replaces folders by their files, and by the files of their subfolders that may be records.
   * Other files in subfolders, such as logs, are passed over.
   *
   * @param paths files and folders
   * @param notes gets a note for each subfolder that is not read
   */
  static List<Path> expand(List<Path> paths, List<String> notes) throws IOException {
    List<Path> all = new ArrayList<>();
    for (Path path : paths) {
      if (Files.isDirectory(path)) {
        addFiles(path, false, all, notes);
      } else {
        all.add(path);
      }
    }
    return all;
  }

  private static void addFiles(Path folder, boolean isInside, List<Path> all, List<String> notes)
      throws IOException {
    List<Path> members;
    try (Stream<Path> files = Files.list(folder)) {
      // A rank that writes a record names it with a dot until it is complete.
      members =
          files.filter(file -> !file.getFileName().toString().startsWith(".")).sorted().toList();
    }
    for (Path member : members) {
      if (Files.isRegularFile(member) && (!isInside || mayBeRecord(member))) {
        all.add(member);
      }
    }
    for (Path member : members) {
      if (Files.isSymbolicLink(member) && Files.isDirectory(member)) {
        notes.add(member + " is left out: a link to a folder");
      } else if (Files.isDirectory(member) && !Files.isReadable(member)) {
        notes.add(member + " is left out: it cannot be read");
      } else if (Files.isDirectory(member)) {
        addFiles(member, true, all, notes);
      }
    }
  }

  private static boolean mayBeRecord(Path file) throws IOException {
    String name = file.getFileName().toString();
    byte[] head = Files.isReadable(file) ? head(file) : new byte[0];
    return name.endsWith(".jfr")
        || isRecording(head)
        || (Files.size(file) <= MOST_BYTES
            && (isPickle(head) || (head.length > 0 && head[0] == '{')));
  }

  /** Returns the first bytes of a file. */
  static byte[] head(Path path) throws IOException {
    try (InputStream in = Files.newInputStream(path)) {
      return in.readNBytes(3);
    }
  }

  static boolean isRecording(byte[] head) {
    return head.length == 3 && head[0] == 'F' && head[1] == 'L' && head[2] == 'R';
  }

  static boolean isPickle(byte[] head) {
    return head.length > 0 && (head[0] & 0xff) == 0x80;
  }
}
