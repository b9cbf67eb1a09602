package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Keeps the README's program and its table of what works where correct. */
@Timeout(600)
class ReadmeTest {
  private static final EnumSet<OpType> LISTED =
      EnumSet.complementOf(
          EnumSet.of(
              OpType.BATCH,
              OpType.SPLIT,
              OpType.SUBGROUP,
              OpType.INIT,
              OpType.CLOSE,
              OpType.RECONFIGURE,
              OpType.ALLOCATE_SYMMETRIC,
              OpType.UNKNOWN,
              OpType.MONITORED_BARRIER));

  private static Capabilities capabilities(BackendProvider provider) {
    return provider.capabilities(provider.deviceTypes().contains("cpu") ? "cpu" : "cuda");
  }

  @Test
  void supportTableIsTrue() throws IOException {
    Map<String, Capabilities> backends = new TreeMap<>();
    ServiceLoader.load(BackendProvider.class)
        .forEach(provider -> backends.put(provider.name(), capabilities(provider)));
    StringBuilder table = new StringBuilder("| operation |");
    backends.keySet().forEach(name -> table.append(' ').append(name).append(" |"));
    table.append("\n|---|").append("---|".repeat(backends.size())).append('\n');
    for (OpType type : LISTED) {
      table.append("| `").append(type.label()).append("` |");
      backends.values().forEach(has -> table.append(has.has(type) ? " yes |" : " – |"));
      table.append('\n');
    }
    assertThat(PageSnippets.page("support.md")).contains(table);
  }

  @Test
  void programRuns(@TempDir Path folder) throws Exception {
    Matcher block = Pattern.compile("```java\n(import .*?)```", Pattern.DOTALL).matcher(readme());
    assertThat(block.find()).isTrue();
    assertThat(block.group(1).lines().count()).isLessThanOrEqualTo(20);
    Path source = folder.resolve("Hello.java");
    Files.writeString(source, block.group(1));
    List<Process> ranks = new ArrayList<>();
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      for (int rank = 0; rank < 2; rank++) {
        ProcessBuilder builder =
            new ProcessBuilder(
                    ProcessHandle.current().info().command().orElseThrow(),
                    "-XX:TieredStopAtLevel=1",
                    "-XX:-UsePerfData",
                    "-cp",
                    ManagementFactory.getRuntimeMXBean().getClassPath(),
                    source.toString())
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("out." + rank).toFile());
        builder
            .environment()
            .putAll(
                Map.of(
                    "RANK", Integer.toString(rank),
                    "WORLD_SIZE", "2",
                    "MASTER_ADDR", "127.0.0.1",
                    "MASTER_PORT", Integer.toString(server.port()),
                    "TORCHELASTIC_USE_AGENT_STORE", "True",
                    "TUTTI_SLOW", "0")); // the other rank may take long to start
        ranks.add(builder.start());
      }
      for (int rank = 0; rank < 2; rank++) {
        assertThat(ranks.get(rank).waitFor(4, TimeUnit.MINUTES)).isTrue();
        assertThat(Files.readString(folder.resolve("out." + rank)))
            .isEqualTo("rank " + rank + " of 2 has the sum [1.0, 2.0]\n");
      }
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
  }

  /** The first page of the site, the README and the tutorial show the same. */
  @Test
  void pagesAgree() throws IOException {
    String home = PageSnippets.page("index.md");
    Matcher block =
        Pattern.compile(
                "```(?:java|xml|kotlin)?\n(?:import|\\$|Peer|<dep|depen).*?```", Pattern.DOTALL)
            .matcher(readme().substring(0, readme().indexOf("## Unit-test")));
    List<String> same = block.results().map(MatchResult::group).filter(home::contains).toList();
    assertThat(same).hasSize(5);
    String failure = same.get(2).replaceFirst("```\n", "").replace("```", "").replace('\n', ' ');
    assertThat(PageSnippets.page("tutorial.md")).contains(failure.strip());
  }

  private static String readme() throws IOException {
    return Files.readString(SourceTree.root().resolve("README.md"), StandardCharsets.UTF_8);
  }
}
