package dev.tutti.runtime.failure;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The part of a rank's {@link JobState} for operations that wait for long, about which the ranks
 * ask each other.
 */
final class WaitState {
  private final Map<String, GroupState> groups;
  private final List<JobOutput> outputs;
  private final Map<String, Asked> asked = new HashMap<>();

  /** The questions of this rank that have no answer yet, and how long to wait for one. */
  private final Map<Question, Long> waiting = new LinkedHashMap<>();

  /**
   * Creates the state of a rank without questions.
   *
   * @param groups the groups of the job's state
   * @param outputs receives what the job's state puts out
   */
  WaitState(Map<String, GroupState> groups, List<JobOutput> outputs) {
    this.groups = groups;
    this.outputs = outputs;
  }

  /** The last question about a group, and its place in the log. */
  private record Asked(Question question, long number) {}

  void copy(WaitState other) {
    asked.putAll(other.asked);
    waiting.putAll(other.waiting);
  }

  void addTo(GroupState.Sink sink) {
    for (Asked each : asked.values()) {
      sink.add(each.number);
      sink.add(each.question);
    }
    waiting.forEach(
        (question, limit) -> {
          sink.add(question);
          sink.add(limit.longValue());
        });
  }

  /** Returns when the next limit passes; {@link Long#MAX_VALUE} if there is none. */
  long limit() {
    return waiting.values().stream().mapToLong(Long::longValue).min().orElse(Long.MAX_VALUE);
  }

  void begin(Question question, long limit) {
    waiting.put(question, limit);
  }

  void leave(String group) {
    asked.remove(group);
    waiting.keySet().removeIf(question -> question.group().equals(group));
  }

  /** Returns whether a question is still to be asked, since nobody has asked the same. */
  boolean isWanted(Question question) {
    Asked earlier = asked.get(question.group());
    if (!waiting.containsKey(question)) {
      return false;
    }
    if (earlier == null || !question.isSame(earlier.question)) {
      return true;
    }
    if (earlier.question.isOf(question)) {
      ask(question, earlier.number);
    } else {
      outputs.add(new JobOutput.Adopt(question, earlier.number));
    }
    return false;
  }

  /** Takes in a question from the log, which this rank is to answer. */
  void read(Question question, long number) {
    GroupState group = groups.get(question.group());
    if (group != null && group.isJoined) {
      asked.put(group.name, new Asked(question, number));
      outputs.add(new JobOutput.Answer(number, group.name));
    }
  }

  /** Asks the others a question of this rank that is in the log. */
  void ask(Question question, long number) {
    GroupState group = groups.get(question.group());
    if (group != null && group.isJoined) {
      int size = group.globalRanks.size();
      Evidence known = Evidence.of(question.timeout(), size, question.reporter(), -1, false);
      outputs.add(new JobOutput.Find(question, number, known));
    }
  }

  void answered(Question question, long number, @Nullable Evidence evidence) {
    String finding = evidence == null ? null : JobVerdict.ofWait(evidence).text();
    if (finding != null) {
      outputs.add(new JobOutput.Tell(number, finding));
    }
    say(question, finding);
  }

  void say(Question question, @Nullable String finding) {
    if (waiting.remove(question) != null) {
      JobVerdict silence = JobVerdict.unexplained(question.timeout(), "; " + Blame.ofSilence(-1));
      outputs.add(new JobOutput.Explain(question, finding == null ? silence.text() : finding));
    }
  }

  void tick(long now) {
    for (Map.Entry<Question, Long> each : List.copyOf(waiting.entrySet())) {
      if (each.getValue() <= now) {
        say(each.getKey(), null);
      }
    }
  }
}
