package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.BackendException;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import jcuda.LibUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JCudaLibraryTest {
  private static final String NAME = "libJCudaDriver-12.6.0-linux-x86_64.so";
  private static final int NOBODY = 65534;

  @TempDir private Path folder;

  /** Gives the folder the mode of {@code /tmp}. */
  @BeforeEach
  void shareTheFolder() throws IOException {
    Files.setAttribute(folder, "unix:mode", 01777);
  }

  private Set<String> files() throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return new TreeSet<>(all.map(path -> path.getFileName().toString()).toList());
    }
  }

  private static byte[] library() throws IOException {
    return LibUtils.class.getClassLoader().getResourceAsStream("lib/" + NAME).readAllBytes();
  }

  @Test
  void theLibraryIsForJCudaAloneToFindAndOnlyForThisUser() throws IOException {
    String before = System.getProperty("java.io.tmpdir");
    JCudaLibrary.loadFrom(
        folder,
        file -> {
          try {
            assertThat(file.getFileName()).hasToString(NAME);
            assertThat(System.getProperty("java.io.tmpdir")).isEqualTo(file.getParent().toString());
            assertThat(file).hasBinaryContent(library());
            assertThat(
                    PosixFilePermissions.toString(Files.getPosixFilePermissions(file.getParent())))
                .isEqualTo("rwx------");
            assertThat(file.getParent().getParent()).isEqualTo(folder);
          } catch (IOException e) {
            throw new AssertionError(e);
          }
        });
    assertThat(System.getProperty("java.io.tmpdir")).isEqualTo(before);
    assertThat(files()).isEmpty();
  }

  @Test
  void aFileThatAnotherUserPlantedIsNotLoaded() throws IOException {
    Path planted = folder.resolve(NAME);
    Files.write(planted, library());
    JCudaLibrary.loadFrom(folder, file -> assertThat(file).isNotEqualTo(planted));
    assertThat(files()).containsExactly(NAME);
  }

  @Test
  void nothingIsLeftWhenLoadingFails() throws IOException {
    String before = System.getProperty("java.io.tmpdir");
    assertThatThrownBy(
            () ->
                JCudaLibrary.loadFrom(
                    folder,
                    _ -> {
                      throw new UnsatisfiedLinkError("no driver");
                    }))
        .isInstanceOf(UnsatisfiedLinkError.class);
    assertThat(System.getProperty("java.io.tmpdir")).isEqualTo(before);
    assertThat(files()).isEmpty();
  }

  @Test
  void eachOfManyThreadsHasAFileOfItsOwn() throws Exception {
    Set<Path> seen = new ConcurrentSkipListSet<>();
    List<Callable<Void>> calls = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      calls.add(
          () -> {
            JCudaLibrary.loadFrom(folder, seen::add);
            return null;
          });
    }
    try (ExecutorService threads = Executors.newFixedThreadPool(calls.size())) {
      for (Future<Void> call : threads.invokeAll(calls)) {
        call.get();
      }
    }
    assertThat(seen).hasSize(8);
    assertThat(files()).isEmpty();
  }

  @Test
  void aFolderInWhichOthersMayReplaceFilesIsRefused() throws IOException {
    Files.setAttribute(folder, "unix:mode", 0777);
    assertThatThrownBy(() -> JCudaLibrary.loadFrom(folder, _ -> {}))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(folder + " is not safe for JCuda's native library")
        .hasMessageContaining("java.io.tmpdir");
  }

  @Test
  void aFolderThatDoesNotExistIsNamed() {
    Path missing = folder.resolve("missing");
    assertThatThrownBy(() -> JCudaLibrary.loadFrom(missing, _ -> {}))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(missing.toString());
  }

  /** Loads the library as the user that runs it, from the folder given. */
  static final class OtherUser {
    public static void main(String[] arguments) {
      JCudaLibrary.loadFrom(
          Path.of(arguments[0]), file -> System.out.println(Files.isReadable(file)));
    }
  }

  @Test
  void twoUsersOfAHostCanBothLoadTheLibrary() throws Exception {
    assumeTrue((int) Files.getAttribute(Path.of("/proc/self"), "unix:uid") == 0, "needs root");
    assumeTrue(Files.exists(Path.of("/usr/bin/setpriv")), "needs setpriv");
    Path classes = Files.createTempDirectory("tutti-other-user");
    try {
      Process other =
          new ProcessBuilder(
                  "setpriv",
                  "--reuid=" + NOBODY,
                  "--regid=" + NOBODY,
                  "--clear-groups",
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-cp",
                  readableClassPath(classes),
                  OtherUser.class.getName(),
                  folder.toString())
              .redirectErrorStream(true)
              .directory(folder.toFile())
              .start();
      JCudaLibrary.loadFrom(
          folder,
          _ -> {
            try {
              String printed =
                  new String(other.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
              assertThat(printed).isEqualTo("true\n");
              assertThat(other.waitFor()).isZero();
            } catch (IOException | InterruptedException e) {
              throw new AssertionError(e);
            }
          });
    } finally {
      deleteAll(classes);
    }
  }

  /** Copies what the other user needs, who may not enter the folders of the build. */
  private static String readableClassPath(Path target) throws Exception {
    Files.setPosixFilePermissions(target, PosixFilePermissions.fromString("rwxr-xr-x"));
    String natives = LibUtils.class.getClassLoader().getResource("lib/" + NAME).toString();
    String jar = natives.substring("jar:".length(), natives.indexOf("!/"));
    List<Path> sources = new ArrayList<>(List.of(Path.of(URI.create(jar))));
    for (Class<?> each :
        List.of(JCudaLibrary.class, OtherUser.class, BackendException.class, LibUtils.class)) {
      sources.add(Path.of(each.getProtectionDomain().getCodeSource().getLocation().toURI()));
    }
    List<String> path = new ArrayList<>();
    for (Path source : sources) {
      Path copy = target.resolve(Integer.toString(path.size()));
      try (Stream<Path> all = Files.walk(source)) {
        for (Path each : all.toList()) {
          Files.copy(each, copy.resolve(source.relativize(each).toString()));
        }
      }
      path.add(copy.toString());
    }
    return String.join(File.pathSeparator, path);
  }

  private static void deleteAll(Path root) throws IOException {
    try (Stream<Path> all = Files.walk(root)) {
      for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(each);
      }
    }
  }
}
