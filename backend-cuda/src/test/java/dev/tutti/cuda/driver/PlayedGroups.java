package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.nccl.NcclResult;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Collects the calls of each thread that run as one NCCL group, and puts them into their stream.
 */
final class PlayedGroups {
  private static final ThreadLocal<@Nullable List<Step>> OPEN = new ThreadLocal<>();

  private final FakeCudaDriver fake;
  private final PlayedCalls calls;

  /** The work of a call on a stream. */
  interface Body {
    /** Returns false if the communicator was aborted. */
    boolean run() throws InterruptedException;
  }

  private record Step(PlayedCommunicator communicator, long stream, boolean sends, Body body) {}

  PlayedGroups(FakeCudaDriver fake, PlayedCalls calls) {
    this.fake = fake;
    this.calls = calls;
  }

  int start() {
    assertThat(OPEN.get()).as("no group is open").isNull();
    OPEN.set(new ArrayList<>());
    return calls.result("ncclGroupStart");
  }

  /** Adds a call to the open group, unless it fails; returns its result. */
  int add(String call, PlayedCommunicator communicator, long stream, boolean sends, Body body) {
    int result = calls.result(call);
    if (result == NcclResult.SUCCESS) {
      List<Step> steps = OPEN.get();
      assertThat(steps).as("%s is in a group", call).isNotNull();
      steps.add(new Step(communicator, stream, sends, body));
    }
    return result;
  }

  int end() {
    List<Step> steps = OPEN.get();
    OPEN.remove();
    assertThat(steps).as("a group is open").isNotNull();
    PlayedCommunicator communicator = steps.isEmpty() ? null : steps.get(0).communicator;
    int result =
        communicator != null && communicator.isBlocking()
            ? calls.result("ncclGroupEnd", communicator::isAborted)
            : calls.result("ncclGroupEnd");
    if (communicator == null || result != NcclResult.SUCCESS) {
      return result;
    }
    assertThat(communicator.world.isComplete()).as("the communicator is made").isTrue();
    long stream = steps.get(0).stream;
    fake.streams().require("ncclGroupEnd", stream).enqueue(() -> run(communicator, steps));
    return communicator.begin();
  }

  private static void run(PlayedCommunicator communicator, List<Step> steps)
      throws InterruptedException {
    for (boolean sends : new boolean[] {true, false}) {
      for (Step step : steps) {
        if (step.sends == sends && (communicator.isAborted() || !step.body.run())) {
          return;
        }
      }
    }
  }
}
