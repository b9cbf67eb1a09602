package dev.tutti.cli.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import org.junit.jupiter.api.Test;

class ReasonsTest {
  @Test
  void putsFailuresOfFilesIntoWords() {
    assertThat(Reasons.of(new AccessDeniedException("/a"))).isEqualTo("permission denied: /a");
    assertThat(Reasons.of(new FileAlreadyExistsException("/a")))
        .isEqualTo("/a exists and is not a directory");
    assertThat(Reasons.of(new NoSuchFileException("/a")))
        .isEqualTo("no such file or directory: /a");
    assertThat(Reasons.of(new NotDirectoryException("/a"))).isEqualTo("not a directory: /a");
    assertThat(Reasons.of(new FileSystemLoopException("/a")))
        .isEqualTo("FileSystemLoopException at /a");
    assertThat(Reasons.of(new IOException("disk full"))).isEqualTo("disk full");
  }
}
