package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;

/** The sources of the project, as far as tests read pages and scripts of them. */
public final class SourceTree {
  private SourceTree() {}

  /** Returns the folder of the README and of the script {@code tutti}. */
  public static Path root() {
    Path folder = Path.of("").toAbsolutePath();
    while (!Files.exists(folder.resolve("README.md")) || !Files.exists(folder.resolve("tutti"))) {
      folder = folder.getParent();
      assertThat(folder).as("the folder of README.md").isNotNull();
    }
    return folder;
  }
}
