package dev.tutti.runtime.launch;

import dev.tutti.runtime.settings.RuntimeSettings;
import java.util.Optional;

/**
 * Pods of an indexed Kubernetes job, also in a JobSet: {@code JOB_COMPLETION_INDEX} is the rank.
 * The cluster tells no pod how many there are, so the manifest says {@code WORLD_SIZE}. Rank 0 is
 * the pod of index 0, which has a name where the job has a headless service: the manifest says it
 * in {@code MASTER_ADDR}, or the service's name in {@code TUTTI_HEADLESS_SERVICE}.
 */
final class Kubernetes implements LaunchEnvironment {
  private static final String INDEX = "JOB_COMPLETION_INDEX";

  @Override
  public String launcher() {
    return "Kubernetes";
  }

  @Override
  public Optional<Launch> read(Variables variables) {
    if (variables.text(INDEX).isEmpty()) {
      return Optional.empty();
    }
    int rank = variables.required(INDEX);
    int size = variables.required(RuntimeSettings.WORLD_SIZE.name());
    String host =
        variables
            .text(RuntimeSettings.HEADLESS_SERVICE.name())
            .map(service -> firstPod(variables, rank) + "." + service)
            .orElse("");
    return Optional.of(variables.launch(rank, size, host, JobPort.DEFAULT));
  }

  /** Returns the name of the pod of index 0; that of each pod ends with its index. */
  private static String firstPod(Variables variables, int rank) {
    String pod = variables.text("HOSTNAME").orElse("");
    String end = "-" + rank;
    if (!pod.endsWith(end)) {
      throw variables.refusal("HOSTNAME must be the pod's, which ends with " + end);
    }
    return pod.substring(0, pod.length() - end.length()) + "-0";
  }
}
