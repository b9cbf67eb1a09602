package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that the examples for containers let in nobody else, and give the ranks no privileges. */
class KubernetesExamplesTest {
  private static final Path ROOT = SourceTree.root();

  @ParameterizedTest
  @ValueSource(strings = {"job.yaml", "jobset.yaml", "trainjob.yaml"})
  void aManifestHasATokenAPolicyAndNoPrivileges(String name) throws IOException {
    List<String> lines =
        Files.readAllLines(ROOT.resolve("examples/kubernetes").resolve(name)).stream()
            .map(String::strip)
            .toList();
    assertThat(lines)
        .containsSubsequence("- name: TUTTI_TOKEN", "valueFrom:", "secretKeyRef:", "name: hello")
        .containsSubsequence("kind: NetworkPolicy", "podSelector:", "policyTypes: [\"Ingress\"]")
        .contains("runAsNonRoot: true", "type: RuntimeDefault", "drop: [\"ALL\"]")
        .contains("allowPrivilegeEscalation: false");
  }

  @ParameterizedTest
  @ValueSource(strings = {"dist/Containerfile", "examples/kubernetes/Containerfile"})
  void anImageDoesNotRunAsRoot(String name) throws IOException {
    List<String> users =
        Files.readAllLines(ROOT.resolve(name)).stream()
            .filter(line -> line.startsWith("USER "))
            .toList();
    assertThat(users.getLast()).isEqualTo("USER 10001");
  }

  @Test
  void noPagePutsASecretOnACommandLine() throws IOException {
    try (Stream<Path> all = Files.list(ROOT.resolve("docs"))) {
      for (Path page : all.filter(file -> file.toString().endsWith(".md")).toList()) {
        assertThat(Files.readString(page)).as(page.toString()).doesNotContain("$TUTTI_TOKEN");
      }
    }
  }
}
