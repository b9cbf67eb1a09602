package dev.tutti.cuda.driver;

import dev.tutti.cuda.driver.FakeStream.Mark;
import dev.tutti.cuda.driver.FakeStream.Task;
import dev.tutti.cuda.driver.FakeStream.Wait;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A capture, which begins in one stream. Another stream joins when it waits for an event that was
 * recorded in the capture.
 */
final class FakeCapture {
  final Thread recorder = Thread.currentThread();
  final int mode;
  final FakeStream origin;
  private final List<Step> steps = new ArrayList<>();
  private final Set<FakeStream> joined = new java.util.HashSet<>();
  private volatile boolean spoilt;
  private volatile boolean ended;

  /** A step of a graph, which runs in the order of its stream. */
  record Step(FakeStream stream, Task task) {}

  FakeCapture(FakeStream origin, int mode) {
    this.origin = origin;
    this.mode = mode;
  }

  synchronized void join(FakeStream stream) {
    joined.add(stream);
  }

  synchronized void add(FakeStream stream, Task task) {
    steps.add(new Step(stream, task));
  }

  /** Invalidates the capture, so that it yields no graph. */
  void spoil() {
    spoilt = true;
  }

  boolean isEnded() {
    return ended;
  }

  /** Ends the capture in all its streams; returns null if it was invalidated. */
  synchronized @Nullable List<Step> end() {
    ended = true;
    origin.leaveCapture();
    joined.forEach(FakeStream::leaveCapture);
    return spoilt ? null : List.copyOf(steps);
  }

  /** Returns whether the work of all streams comes before the end of the first one. */
  static boolean isJoined(List<Step> steps, FakeStream origin) {
    Map<FakeStream, Clock> clocks = new HashMap<>();
    IdentityHashMap<FakePoint, Clock> points = new IdentityHashMap<>();
    for (Step step : steps) {
      Clock now = clocks.getOrDefault(step.stream, Clock.START);
      switch (step.task) {
        case Mark mark -> points.put(mark.point(), now);
        case Wait wait ->
            clocks.put(step.stream, now.join(points.getOrDefault(wait.point(), Clock.START)));
        default -> clocks.put(step.stream, now.tick(step.stream.number));
      }
    }
    Clock end = clocks.getOrDefault(origin, Clock.START);
    return clocks.entrySet().stream()
        .allMatch(
            each -> {
              int number = each.getKey().number;
              return each.getValue().at(number) <= end.at(number);
            });
  }
}
