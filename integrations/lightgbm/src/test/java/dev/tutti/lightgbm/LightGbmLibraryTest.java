package dev.tutti.lightgbm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.microsoft.ml.lightgbm.lightgbmlib;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class LightGbmLibraryTest {
  private static final List<String> FILES = List.of("lib_lightgbm.so", "lib_lightgbm_swig.so");

  @TempDir Path folder;

  @Test
  void aFolderTakesTheJarsPlace() throws Exception {
    for (String name : FILES) {
      copy(name);
    }
    Process process =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                ManagementFactory.getRuntimeMXBean().getClassPath(),
                LoadFrom.class.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .start();
    List<String> mapped = process.inputReader().readAllLines();
    assertThat(process.waitFor()).as("%s", mapped).isZero();
    assertThat(mapped)
        .containsExactlyInAnyOrder(
            folder.resolve(FILES.get(0)).toString(), folder.resolve(FILES.get(1)).toString());
  }

  @Test
  void aFolderNeedsBothFiles() throws Exception {
    copy(FILES.getFirst());
    assertThatThrownBy(() -> LightGbmLibrary.load(folder))
        .isInstanceOf(LightGbmException.class)
        .hasMessage(
            "folder %s must have the files %s, but has no %s"
                .formatted(folder, FILES, FILES.getLast()));
  }

  @Test
  void whatIsLoadedStays() throws Exception {
    LightGbmLibrary.load();
    for (String name : FILES) {
      copy(name);
    }
    assertThatThrownBy(() -> LightGbmLibrary.load(folder))
        .isInstanceOf(LightGbmException.class)
        .hasMessage(
            "this process already has LightGBM's native library, not from %s; load that one first"
                .formatted(folder));
  }

  private void copy(String name) throws IOException {
    try (InputStream library = lightgbmlib.class.getResourceAsStream("linux/x86_64/" + name)) {
      Files.copy(library, folder.resolve(name));
    }
  }
}
