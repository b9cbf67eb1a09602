package dev.tutti.gloo.topology;

import dev.tutti.gloo.shm.StaleFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.Optional;

/**
 * An empty file with an unguessable name, by which ranks find out which of them see the same
 * directory. Whether they see the same memory is verified later, in that memory.
 *
 * @param directory the directory
 * @param file the path of the file
 */
public record HostProbeFile(Path directory, Path file) implements AutoCloseable {
  /**
   * Creates the file of this rank.
   *
   * @param directory a directory of an in-memory file system
   * @throws IOException if there is no such directory, or no file can be created in it
   */
  public static HostProbeFile light(Path directory) throws IOException {
    StaleFiles.remove(directory);
    return new HostProbeFile(directory, StaleFiles.create(directory));
  }

  /** Returns the name that other ranks look for. */
  public String name() {
    return file.getFileName().toString();
  }

  /**
   * Returns whether a rank's file is in a directory and this process may use files that the rank
   * creates there.
   *
   * @param name the result of {@link #name()} on that rank
   * @param directory the directory in which this rank looks
   */
  public static boolean isSeen(String name, Path directory) {
    File file = directory.resolve(name).toFile();
    return file.canRead() && file.canWrite();
  }

  /**
   * Returns the user of a rank's file in a directory if it is another user's; empty if there is no
   * such file, or it is this user's.
   *
   * @param name the result of {@link #name()} on that rank
   */
  public Optional<String> otherUserOf(String name) {
    try {
      UserPrincipal user = Files.getOwner(directory.resolve(name), LinkOption.NOFOLLOW_LINKS);
      return user.equals(Files.getOwner(file)) ? Optional.empty() : Optional.of(user.getName());
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** Removes the file, and the files of ranks that were killed meanwhile. */
  @Override
  public void close() {
    try {
      Files.deleteIfExists(file);
      StaleFiles.remove(directory);
    } catch (IOException e) {
      System.getLogger(HostProbeFile.class.getName())
          .log(System.Logger.Level.WARNING, "cannot remove " + file, e);
    }
  }
}
