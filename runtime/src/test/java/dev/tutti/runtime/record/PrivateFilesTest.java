package dev.tutti.runtime.record;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PrivateFilesTest {
  @TempDir private Path folder;

  private static String mode(Path file) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
  }

  @Test
  void flightRecordsAreForTheirUserAlone() throws IOException {
    Path records = folder.resolve("a/records");
    for (Path file : RecordFiles.write(records.resolve("rank_"), 3, Map.of(), Map.of())) {
      assertThat(mode(file)).isEqualTo("rw-------");
    }
    assertThat(mode(records)).isEqualTo("rwx------");
    assertThat(mode(folder.resolve("a"))).isEqualTo("rwx------");
    try (Stream<Path> all = Files.list(records)) {
      assertThat(all.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrder("rank_3", "flight-record-3.json");
    }
  }

  /** Another user has put links where a record and its temporary file may be expected. */
  @Test
  void linksAreReplacedAndNotFollowed() throws IOException {
    Path victim = Files.writeString(folder.resolve("victim"), "precious");
    Files.createSymbolicLink(folder.resolve("rank_0"), victim);
    Files.createSymbolicLink(folder.resolve(".rank_0.tmp"), victim);
    RecordFiles.write(folder.resolve("rank_"), 0, Map.of(), Map.of());
    assertThat(victim).hasContent("precious");
    assertThat(Files.isRegularFile(folder.resolve("rank_0"), LinkOption.NOFOLLOW_LINKS)).isTrue();
  }

  @Test
  void nothingIsLeftOfAFileThatCannotBeReplaced() throws IOException {
    Path taken = Files.createDirectory(folder.resolve("taken"));
    Files.writeString(taken.resolve("file"), "");
    assertThatThrownBy(() -> PrivateFiles.replace(taken, new byte[1]))
        .isInstanceOf(FileSystemException.class);
    try (Stream<Path> all = Files.list(folder)) {
      assertThat(all).containsExactly(taken);
    }
  }

  /** Another user has made a file that all can read, or a link, where a log is about to begin. */
  @Test
  void whatIsInThePlaceOfALogIsReplaced() throws IOException {
    Path file = Files.writeString(folder.resolve("log"), "long before");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    Path victim = Files.writeString(folder.resolve("victim"), "precious");
    Path link = Files.createSymbolicLink(folder.resolve("link"), victim);
    Path missing = folder.resolve("missing");
    Path dangling = Files.createSymbolicLink(folder.resolve("dangling"), missing);
    for (Path each : new Path[] {file, link, dangling, folder.resolve("new")}) {
      try (OutputStream out = PrivateFiles.create(each)) {
        out.write("new".getBytes(UTF_8));
      }
      assertThat(each).hasContent("new");
      assertThat(Files.isRegularFile(each, LinkOption.NOFOLLOW_LINKS)).isTrue();
      assertThat(mode(each)).isEqualTo("rw-------");
    }
    assertThat(victim).hasContent("precious");
    assertThat(missing).doesNotExist();
  }
}
