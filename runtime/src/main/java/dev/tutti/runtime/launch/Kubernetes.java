package dev.tutti.runtime.launch;

import dev.tutti.runtime.settings.RuntimeSettings;
import java.util.Optional;

/**
 * Pods of an indexed Kubernetes job, including one in a JobSet: {@code JOB_COMPLETION_INDEX} is the
 * rank. The cluster does not pass a pod the number of pods, so the manifest sets {@code
 * WORLD_SIZE}. Rank 0 is the pod with index 0, which has a host name if the job has a headless
 * service: the manifest gives that name in {@code MASTER_ADDR}, or the name of the service in
 * {@code TUTTI_HEADLESS_SERVICE}.
 */
final class Kubernetes {
  private static final String INDEX = "JOB_COMPLETION_INDEX";

  private Kubernetes() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
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

  /** Returns the name of the pod with index 0; the name of each pod ends with its index. */
  private static String firstPod(Variables variables, int rank) {
    String pod = variables.text("HOSTNAME").orElse("");
    String end = "-" + rank;
    if (!pod.endsWith(end)) {
      throw variables.refusal("HOSTNAME must be the pod's name, which ends with " + end);
    }
    return pod.substring(0, pod.length() - end.length()) + "-0";
  }
}
