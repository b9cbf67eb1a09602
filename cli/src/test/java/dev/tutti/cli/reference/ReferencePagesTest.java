package dev.tutti.cli.reference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.SourceTree;
import dev.tutti.runtime.settings.SettingNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Keeps the pages of settings and of the command line in sync with the code, or writes them. */
@Timeout(60)
class ReferencePagesTest {
  private static final String REWRITE = "./t ReferencePagesTest -Dtutti.writeDocs=true";

  @Test
  void settingsAreThoseOfTheCode() throws IOException {
    assertIsPage("settings.md", SettingsPage.text());
  }

  @Test
  void commandsAreThoseOfTheCode() throws IOException {
    assertIsPage("command-line.md", CommandLinePage.text());
  }

  @Test
  void everySettingOfTuttiIsThere() {
    String page = SettingsPage.text();
    assertThat(SettingNames.OF_TUTTI).allSatisfy(name -> assertThat(page).contains("`" + name));
  }

  @Test
  void everyCommandIsThere() {
    assertThat(CommandLinePage.text())
        .contains("## tutti\n", "## tutti run\n", "## tutti store serve\n", "--nproc");
  }

  private static void assertIsPage(String name, String text) throws IOException {
    Path page = SourceTree.root().resolve("docs/reference").resolve(name);
    if (Boolean.getBoolean("tutti.writeDocs")) {
      Files.writeString(page, text);
    }
    assertThat(Files.readString(page))
        .as("docs/reference/%s differs from the code; this writes it anew: %s", name, REWRITE)
        .isEqualTo(text);
  }
}
