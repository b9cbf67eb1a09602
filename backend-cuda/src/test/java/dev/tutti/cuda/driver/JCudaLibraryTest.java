package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.BackendException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JCudaLibraryTest {
  @TempDir private Path folder;

  private List<String> files() throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).toList();
    }
  }

  @Test
  void theLibraryIsPutWhereJCudaLooks() throws IOException {
    JCudaLibrary.unpackTo(folder);
    JCudaLibrary.unpackTo(folder);
    assertThat(files()).containsExactly("libJCudaDriver-12.6.0-linux-x86_64.so");
    assertThat(Files.size(folder.resolve("libJCudaDriver-12.6.0-linux-x86_64.so")))
        .isGreaterThan(1_000_000);
  }

  @Test
  void anotherFileOfThatNameIsRefusedAndLeftAlone() throws IOException {
    Path file = folder.resolve("lib.so");
    Files.write(file, new byte[] {1, 2, 4});
    assertThatThrownBy(() -> JCudaLibrary.unpack(file, new byte[] {1, 2, 3}))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(file.toString())
        .hasMessageContaining("java.io.tmpdir");
    assertThat(Files.readAllBytes(file)).containsExactly(1, 2, 4);
  }

  @Test
  void manyAtOnceSeeWholeFiles() throws Exception {
    byte[] content = new byte[1 << 20];
    content[content.length - 1] = 1;
    Path file = folder.resolve("lib.so");
    List<Callable<Void>> calls = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      calls.add(
          () -> {
            JCudaLibrary.unpack(file, content);
            return null;
          });
    }
    try (ExecutorService threads = Executors.newFixedThreadPool(calls.size())) {
      for (Future<Void> call : threads.invokeAll(calls)) {
        call.get();
      }
    }
    assertThat(files()).containsExactly("lib.so");
  }

  @Test
  void aFolderThatCannotBeWrittenIsNamed() {
    Path missing = folder.resolve("missing");
    assertThatThrownBy(() -> JCudaLibrary.unpackTo(missing))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining(missing.toString());
  }
}
