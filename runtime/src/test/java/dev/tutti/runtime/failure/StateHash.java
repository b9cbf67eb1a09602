package dev.tutti.runtime.failure;

import dev.tutti.runtime.operation.RankProgress;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Hashes states of a {@link JobModel} to 64 bits, to tell them apart. */
final class StateHash implements JobState.Sink {
  private long hash = 1;

  /** Returns the hash of all that was added, in its order. */
  long value() {
    return hash;
  }

  /** Adds a number; unlike in hash codes of Java, 0 and -1, or {0, 1} and {1} differ. */
  @Override
  public void add(long value) {
    long mixed = (hash ^ (value * 0x9E3779B97F4A7C15L)) * 0xBF58476D1CE4E5B9L;
    mixed = (mixed ^ (mixed >>> 29)) * 0x94D049BB133111EBL;
    hash = mixed ^ (mixed >>> 32);
  }

  @Override
  public void add(@Nullable Object value) {
    switch (value) {
      case null -> add(1);
      case Evidence all -> add(all);
      case FailureEvent event -> add(event);
      case LogEntry.Failed(FailureEvent event) -> add(event);
      case LogEntry.Asked(Question question) -> add(question);
      case LogEntry.Found(String _, int by, Diagnosis finding) -> {
        add(by);
        add(finding);
      }
      case Diagnosis finding -> {
        add(finding.failedRank());
        add(finding.text().hashCode());
      }
      case JobOutput.Append(long number, LogEntry entry) -> {
        add(number);
        add(entry);
      }
      case JobInput.Written(long number) -> {
        add(3);
        add(number);
      }
      case JobInput.Taken(long number, LogEntry entry) -> {
        add(2);
        add(number);
        add(entry);
      }
      case JobInput.Unwritten() -> add(4);
      case Integer number -> add(number.longValue());
      case Enum<?> constant -> add(constant.name().hashCode());
      case Question question -> {
        add(question.reporter());
        add(question.sequence());
      }
      case String text -> add(text.hashCode());
      default -> throw new AssertionError(value);
    }
  }

  private void add(FailureEvent event) {
    add(event.kind());
    add(event.reporter());
    add(event.failedRank());
    add(event.message().hashCode());
  }

  private void add(Evidence all) {
    add(all.event());
    add((all.paused() ? 1 : 0) + (all.alone() ? 2 : 0) + (all.adopted() == null ? 4 : 0));
    for (Map.Entry<Integer, RankProgress> answer : all.answers().entrySet()) {
      add(answer.getKey());
      add(answer.getValue().issued());
    }
    all.silent().forEach(rank -> add(-2 - rank));
    add(all.adopted());
  }
}
