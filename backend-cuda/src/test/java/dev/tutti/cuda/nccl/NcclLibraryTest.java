package dev.tutti.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests where NCCL is searched for. */
class NcclLibraryTest {
  @Test
  void writesVersions() {
    assertThat(NcclLibrary.versionText(22809)).isEqualTo("2.28.9");
    assertThat(NcclLibrary.versionText(23206)).isEqualTo("2.32.6");
  }

  @Test
  void saysThatANamedFileCannotBeLoaded(@TempDir Path folder) {
    Path file = folder.resolve("libnccl.so.2");
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_NCCL_LIBRARY", file.toString()));
    assertThatThrownBy(() -> NcclLibrary.load(settings, List.of()))
        .isInstanceOf(BackendException.class)
        .hasMessage("the loader cannot load " + file + ", the value of TUTTI_NCCL_LIBRARY");
  }

  @Test
  void saysThatALibraryIsNotNccl() {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_NCCL_LIBRARY", "libc.so.6"));
    assertThatThrownBy(() -> NcclLibrary.load(settings, List.of()))
        .isInstanceOf(BackendException.class)
        .hasMessage("this NCCL library has no function ncclGetVersion");
  }

  @Test
  void looksInTheNewestPythonOfAnEnvironmentFirst(@TempDir Path folder) throws IOException {
    Path newer = Files.createDirectories(folder.resolve("lib/python3.12/site-packages"));
    Path older = Files.createDirectories(folder.resolve("lib/python3.9/site-packages"));
    Settings settings = Settings.ofEnvironment(Map.of("VIRTUAL_ENV", folder.toString()));
    assertThat(NcclLibrary.wheelFolders(settings)).startsWith(newer, older);
  }
}
