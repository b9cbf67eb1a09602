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

  /** The parts of a group, in their order: what others wait for precedes what waits for others. */
  enum Phase {
    GIVE,
    TAKE,
    AWAIT_TAKEN
  }

  private record Step(PlayedCommunicator communicator, long stream, Phase phase, Body body) {}

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
  int add(String call, PlayedCommunicator communicator, long stream, Phase phase, Body body) {
    int result = calls.result(call);
    if (result == NcclResult.SUCCESS) {
      List<Step> steps = OPEN.get();
      assertThat(steps).as("%s is in a group", call).isNotNull();
      steps.add(new Step(communicator, stream, phase, body));
    }
    return result;
  }

  /** Adds the rest of a call that {@link #add} has added. */
  void addRest(PlayedCommunicator communicator, long stream, Phase phase, Body body) {
    List<Step> steps = OPEN.get();
    assertThat(steps).isNotNull();
    steps.add(new Step(communicator, stream, phase, body));
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
    for (Phase phase : Phase.values()) {
      for (Step step : steps) {
        if (step.phase == phase && (communicator.isAborted() || !step.body.run())) {
          return;
        }
      }
    }
  }
}
