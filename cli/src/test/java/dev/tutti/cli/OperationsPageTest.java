package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Batch;
import dev.tutti.GroupDiagnostics;
import dev.tutti.ProcessGroup;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Compiles and runs the Java of pages, and checks for operations that their page omits. */
@Timeout(300)
class OperationsPageTest {
  private static final String OPERATIONS = "operations.md";

  @ParameterizedTest
  @CsvSource({OPERATIONS + ", 40", "from-torch-distributed.md, 6"})
  void theSnippetsPrintWhatTheySay(String page, int atLeast, @TempDir Path folder)
      throws Exception {
    try (PageSnippets snippets = new PageSnippets(PageSnippets.page(page), folder)) {
      assertThat(snippets.expected()).hasSizeGreaterThan(atLeast);
      for (String backend : new String[] {"threaded", "gloo"}) {
        assertThat(snippets.printed(backend))
            .as(backend)
            .containsExactlyElementsOf(snippets.expected());
      }
    }
  }

  @Test
  void everyOperationIsShown() throws IOException {
    String page = PageSnippets.page(OPERATIONS);
    assertThat(
            Stream.of(ProcessGroup.class, Batch.class, GroupDiagnostics.class)
                .flatMap(type -> Stream.of(type.getMethods()))
                .map(Method::getName)
                .distinct()
                .filter(name -> !page.contains(name)))
        .isEmpty();
  }
}
