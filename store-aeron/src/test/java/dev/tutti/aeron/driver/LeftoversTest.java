package dev.tutti.aeron.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that a start deletes nothing but this user's own folders, whatever others have made. */
@Timeout(120)
class LeftoversTest {
  @TempDir private Path directory;
  @TempDir private Path elsewhere;

  private Path stale(String name) throws IOException {
    Path stale = Files.createDirectory(directory.resolve("tutti-aeron-" + name));
    Files.createFile(stale.resolve("lock"));
    Files.createFile(Files.createDirectory(stale.resolve("driver")).resolve("cnc.dat"));
    return stale;
  }

  private void start() {
    DriverDirectory.create(directory, 0).close();
  }

  private static void run(String... command) throws Exception {
    assertThat(new ProcessBuilder(command).inheritIO().start().waitFor()).isZero();
  }

  @Test
  void anOwnFolderIsDeleted() throws Exception {
    Path stale = stale("1");
    start();
    assertThat(stale).doesNotExist();
  }

  @Test
  void aFifoInPlaceOfTheLockIsNotOpened() throws Exception {
    Path stale = stale("1");
    Files.delete(stale.resolve("lock"));
    run("mkfifo", stale.resolve("lock").toString());
    start();
    assertThat(stale.resolve("lock")).exists();
  }

  @Test
  void aLinkInPlaceOfTheLockIsNotFollowed() throws Exception {
    Path stale = stale("1");
    Path target = Files.createFile(elsewhere.resolve("target"));
    Files.delete(stale.resolve("lock"));
    Files.createSymbolicLink(stale.resolve("lock"), target);
    start();
    assertThat(stale.resolve("driver/cnc.dat")).exists();
    assertThat(target).exists();
  }

  @Test
  void aLinkInPlaceOfTheFolderIsNotFollowed() throws Exception {
    Path precious = Files.createDirectory(elsewhere.resolve("precious"));
    Files.createFile(precious.resolve("lock"));
    Files.createSymbolicLink(directory.resolve("tutti-aeron-1"), precious);
    start();
    assertThat(precious.resolve("lock")).exists();
  }

  @Test
  void aLinkInTheFolderIsDeletedAndWhatItPointsToIsKept() throws Exception {
    Path stale = stale("1");
    Path precious = Files.createFile(elsewhere.resolve("precious"));
    Files.createSymbolicLink(stale.resolve("link"), elsewhere);
    start();
    assertThat(stale).doesNotExist();
    assertThat(precious).exists();
  }

  @Test
  void aFolderThatOthersMayWriteToIsLeftAlone() throws Exception {
    Path stale = stale("1");
    Files.setPosixFilePermissions(stale, PosixFilePermissions.fromString("rwxrwxrwx"));
    start();
    assertThat(stale.resolve("driver/cnc.dat")).exists();
  }

  @Test
  void aFolderOfAnotherUserIsLeftAlone() throws Exception {
    assumeThat(System.getProperty("user.name")).as("only root gives files away").isEqualTo("root");
    Path stale = stale("1");
    Files.setAttribute(stale, "unix:uid", 65_534);
    start();
    assertThat(stale.resolve("driver/cnc.dat")).exists();
    DriverDirectory.deleteIfStale(stale.toString());
    assertThat(stale.resolve("driver/cnc.dat")).exists();
  }
}
