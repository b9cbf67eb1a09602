package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class KubernetesTest {
  @Test
  void readsAPodOfAnIndexedJob() {
    assertThat(
            Recorded.found(
                "JOB_COMPLETION_INDEX=12",
                "WORLD_SIZE=16",
                "HOSTNAME=hello-12",
                "TUTTI_HEADLESS_SERVICE=ranks"))
        .isEqualTo("12/16 at hello-0.ranks:29500 by Kubernetes");
  }

  @Test
  void readsAPodOfAJobSet() {
    assertThat(
            Recorded.found(
                "JOB_COMPLETION_INDEX=1",
                "WORLD_SIZE=2",
                "HOSTNAME=hello-rank-0-1",
                "TUTTI_HEADLESS_SERVICE=hello"))
        .isEqualTo("1/2 at hello-rank-0-0.hello:29500 by Kubernetes");
  }

  @Test
  void aManifestMayNameTheHostItself() {
    assertThat(
            LaunchEnvironments.complete(
                    Recorded.environment(
                        "JOB_COMPLETION_INDEX=1", "WORLD_SIZE=2", "MASTER_ADDR=hello-0.ranks"))
                .text("MASTER_ADDR"))
        .contains("hello-0.ranks");
  }

  @Test
  void refusesAnIndexWithoutASize() {
    assertThatThrownBy(() -> Recorded.found("JOB_COMPLETION_INDEX=1"))
        .hasMessageContaining("WORLD_SIZE is not set; found JOB_COMPLETION_INDEX=1");
  }

  @Test
  void refusesAHostNameOfAnotherPod() {
    assertThatThrownBy(
            () ->
                Recorded.found(
                    "JOB_COMPLETION_INDEX=1",
                    "WORLD_SIZE=2",
                    "HOSTNAME=laptop",
                    "TUTTI_HEADLESS_SERVICE=ranks"))
        .hasMessageContaining("HOSTNAME must be the pod's name, which ends with -1; found")
        .hasMessageContaining("HOSTNAME=laptop");
  }
}
