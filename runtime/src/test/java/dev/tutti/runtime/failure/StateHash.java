package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.RankProgress;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Hashes states of a {@link JobModel} to 64 bits, to tell them apart. */
final class StateHash {
  private StateHash() {}

  /**
   * Hashes a value; unlike hash codes of Java, it is not the same for 0 and -1, or {0, 1} and {1}.
   */
  static long of(@Nullable Object value) {
    return switch (value) {
      case null -> 1;
      case List<?> list -> {
        long hash = 2;
        for (Object element : list) {
          hash = mix(hash, of(element));
        }
        yield hash;
      }
      case Evidence all ->
          of(
              Arrays.asList(
                  all.event(),
                  all.paused(),
                  all.alone(),
                  List.copyOf(all.answers().keySet()),
                  all.answers().values().stream().map(RankProgress::issued).toList(),
                  List.copyOf(all.silent()),
                  all.adopted()));
      case Long number -> number;
      case FailureEvent event ->
          of(List.of(event.kind(), event.reporter(), event.failedRank(), event.message()));
      case LogEntry.Failed(FailureEvent event) -> of(event);
      case LogEntry.Found(String _, int by, Diagnosis finding) ->
          of(List.of(by, finding.failedRank(), finding.text()));
      case JobOutput.Append(long number, LogEntry entry) -> of(List.of(number, entry));
      case JobInput.Taken(long number, LogEntry entry) -> of(List.of(number, entry));
      default -> value.hashCode();
    };
  }

  /** Mixes a part into a hash. */
  static long mix(long hash, long part) {
    long mixed = (hash ^ (part * 0x9E3779B97F4A7C15L)) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ (mixed >>> 29)) * 0x94D049BB133111EBL;
    return mixed ^ (mixed >>> 32);
  }
}
