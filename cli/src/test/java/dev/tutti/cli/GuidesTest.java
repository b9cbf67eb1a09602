package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Compiles the Java of guides that cannot run everywhere: on GPUs, in a service, with ports. */
class GuidesTest {
  private static final String IMPORTS =
      """
      import dev.tutti.checkpoint.*;
      import dev.tutti.cuda.*;
      import dev.tutti.gradients.*;
      import dev.tutti.gradients.optimizer.*;
      import dev.tutti.store.tcp.*;
      import java.nio.file.Path;
      """;

  @ParameterizedTest
  @CsvSource({
    "gpus.md, 6",
    "stores.md, 2",
    "embedding.md, 3",
    "interop.md, 2",
    "checkpoints.md, 4",
    "elastic.md, 4"
  })
  void theirCodeCompiles(String page, int blocks, @TempDir Path folder) throws Exception {
    try (PageSnippets snippets = new PageSnippets(PageSnippets.page(page), folder, IMPORTS)) {
      assertThat(snippets.blocks()).isEqualTo(blocks);
    }
  }
}
