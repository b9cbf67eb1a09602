package dev.tutti.cli.reference;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.SourceTree;
import dev.tutti.runtime.settings.SettingNames;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Keeps the pages of settings, command line and API in sync with the code, or writes them. */
@Timeout(60)
class ReferencePagesTest {
  private static final String REWRITE = "./t ReferencePagesTest -Dtutti.writeDocs=true";

  /** One type of each module that exports packages to all others. */
  private static final List<String> MODULES =
      List.of(
          "dev.tutti.ProcessGroup",
          "dev.tutti.cpu.HostReducer",
          "dev.tutti.store.HashStore",
          "dev.tutti.kernels.AllReduceLimits",
          "dev.tutti.fake.FakeProvider",
          "dev.tutti.gloo.GlooProvider",
          "dev.tutti.gradients.GradientReducer",
          "dev.tutti.checkpoint.Checkpoints",
          "dev.tutti.cuda.Cuda",
          "dev.tutti.aeron.AeronStore",
          "dev.tutti.aeron.cluster.AeronClusterStore");

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

  @Test
  void signaturesAreThoseOnRecord() throws Exception {
    Path page = SourceTree.root().resolve("docs/reference/api.txt");
    SortedSet<String> now = PublicApi.of(MODULES);
    if (Boolean.getBoolean("tutti.writeDocs")) {
      Files.writeString(page, String.join("\n", now) + "\n");
    }
    SortedSet<String> before = new TreeSet<>(Files.readAllLines(page));
    SortedSet<String> differences = new TreeSet<>();
    before.stream().filter(line -> !now.contains(line)).forEach(x -> differences.add("- " + x));
    now.stream().filter(line -> !before.contains(line)).forEach(x -> differences.add("+ " + x));
    assertThat(differences)
        .as(
            "docs/reference/api.txt differs from the code. A line that goes or changes is an"
                + " incompatible change unless it has @Incubating: add the change and its"
                + " replacement to CHANGELOG.md. This writes the page anew: %s",
            REWRITE)
        .isEmpty();
  }

  @Test
  void typesMembersAndMarksAreThere() throws Exception {
    assertThat(PublicApi.of(MODULES))
        .contains(
            "dev.tutti.SubgroupOptions: public boolean SubgroupOptions.isLocalSynchronization()",
            "dev.tutti.OpType: public static final OpType OpType.SEND",
            "dev.tutti.StreamBlock: @Incubating public abstract interface StreamBlock :"
                + " AutoCloseable")
        .noneMatch(line -> line.startsWith("dev.tutti.runtime."));
  }

  @Test
  void noUrlOrPortIsBrokenInTwo() {
    assertThat(CommandLinePage.text())
        .doesNotContainPattern("\\w(:\\n *(//|\\d)|\\.\\n +dev\\b)|\\[:\\s");
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
