package dev.tutti.runtime.failure;

import dev.tutti.runtime.model.Hash;
import dev.tutti.runtime.operation.RankProgress;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Hashes states of a {@link JobModel}. */
final class StateHash extends Hash implements GroupState.Sink {
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
      case JobInput.Joined(String _, List<Integer> _, boolean isOpen) -> add(isOpen ? 6 : 5);
      case JobInput.Left _ -> add(7);
      case JobInput.Failed(FailureEvent event) -> {
        add(8);
        add(event);
      }
      case JobInput.PeerGone(FailureEvent event) -> {
        add(9);
        add(event);
      }
      case JobInput.Reached _ -> add(10);
      case JobInput.Waits(Question question) -> {
        add(11);
        add(question);
      }
      case JobInput.Answered(Question question, long number, @Nullable Evidence evidence) -> {
        add(12);
        add(question);
        add(number);
        add((Object) evidence);
      }
      case JobInput.Adopted(Question question, @Nullable String finding) -> {
        add(13);
        add(question);
        add(finding);
      }
      case JobInput.Read(long number, LogEntry entry) -> {
        add(14);
        add(number);
        add(entry);
      }
      case JobInput.Collected(String _, @Nullable Evidence evidence) -> {
        add(15);
        add((Object) evidence);
      }
      case JobInput.ServerLost _ -> add(16);
      case JobInput.Tick _ -> add(17);
      case JobInput.Missed _ -> add(18);
      case Integer number -> add(number.longValue());
      case Enum<?> constant -> add(constant.name().hashCode());
      case Question question -> {
        add(question.reporter());
        add(question.timeout().sequence());
      }
      case String text -> add(text.hashCode());
      default -> throw new AssertionError(value);
    }
  }

  private void add(FailureEvent event) {
    add(event.kind());
    add(event.reporter());
    add(event.failedRank());
    add(event.sequence());
    add(event.message().hashCode());
  }

  private void add(RankProgress progress) {
    add(progress.issued());
    add((progress.closed() ? 1 : 0) + 2 * progress.pending().size());
    add(progress.joining().hashCode());
    progress.recent().forEach(call -> add(call.type()));
  }

  private void add(Evidence all) {
    add(all.event());
    add((all.paused() ? 1 : 0) + (all.alone() ? 2 : 0) + (all.adopted() == null ? 4 : 0));
    for (Map.Entry<Integer, RankProgress> answer : all.answers().entrySet()) {
      add(answer.getKey());
      add(answer.getValue());
    }
    all.silent().forEach(rank -> add(-2 - rank));
    add(all.adopted());
  }
}
