package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cuda.driver.GraphCalls;
import dev.tutti.gradients.GradientReducer;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.gradients.ReducerOptions.Divisor;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests that no two accesses of a reducer's step race, and that they would without any one of its
 * orders between streams.
 */
class OverlapRacesTest {
  private static final List<Integer> LAST_FIRST = List.of(2, 1, 0);

  /** What a rank's device holds, and what its program does there. */
  static final class Rank {
    final ProcessGroup group;
    final CudaDevice device;
    final DeviceBuckets buckets;
    final ReducerOptions options;
    final CudaStream own;
    final CudaStream other;
    final List<Tensor> parameters;
    final List<Tensor> gradients;
    final Mutation mutation;

    Rank(ProcessGroup group, CudaDevice device, DeviceBuckets buckets, Mutation mutation) {
      this.group = group;
      this.device = device;
      this.buckets = buckets;
      options = ReducerOptions.DEFAULT.withAllocator(buckets).withBucketBytes(1, 1);
      this.mutation = mutation;
      own = device.currentStream();
      other = device.poolStream();
      parameters = tensors(device);
      gradients = tensors(device);
    }

    private static List<Tensor> tensors(CudaDevice device) {
      return List.of(
          device.tensors().copyOf(Tensor.of(1f, 2f, 3f)),
          device.tensors().copyOf(Tensor.of(4f, 5f)),
          device.tensors().copyOf(Tensor.of(6f, 7f)));
    }

    void copy(Tensor target, Tensor source) {
      buckets.copy(target, source);
    }

    /** Writes and reduces the gradients, and updates the parameters. */
    void step(GradientReducer reducer) {
      for (int i : LAST_FIRST) {
        copy(reducer.gradient(i), gradients.get(i));
        reducer.ready(i);
      }
      reducer.await();
      for (int i : LAST_FIRST) {
        copy(parameters.get(i), reducer.gradient(i));
      }
    }

    /** Writes a gradient of its own, which the reducer copies. */
    void write(int index, GradientReducer reducer) {
      copy(gradients.get(index), parameters.get(index));
      reducer.ready(index);
    }

    private GradientReducer reducer(ReducerOptions changed) {
      GradientReducer reducer = new GradientReducer(group, parameters, changed);
      other.waitFor(own);
      return reducer;
    }
  }

  /** A place for programs to say which orders may be left out. */
  static final class Mutation {
    private final int dropped;
    private volatile Thread thread = Thread.currentThread();
    private boolean armed;
    private String needless = "";
    private int seen;

    Mutation(int dropped) {
      this.dropped = dropped;
    }

    /** Leaves alone the orders that a method calls for, which another order makes needless. */
    void except(String method) {
      needless = method;
    }

    void arm(boolean on) {
      thread = Thread.currentThread();
      armed = on;
    }

    boolean drops() {
      return thread.equals(Thread.currentThread()) && armed && isOfReducer() && seen++ == dropped;
    }

    private boolean isOfReducer() {
      List<StackWalker.StackFrame> frames = StackWalker.getInstance().walk(Stream::toList);
      return frames.stream()
          .dropWhile(frame -> !orders(frame))
          .dropWhile(Mutation::orders)
          .findFirst()
          .filter(caller -> !caller.getMethodName().equals(needless))
          .isPresent();
    }

    private static boolean orders(StackWalker.StackFrame frame) {
      return frame.getClassName().startsWith("dev.tutti.gradients.Lane")
          || frame.getClassName().endsWith(".MarkedStreams");
    }
  }

  /** A program of a rank, whose orders are all needed. */
  enum Program {
    /** Reduces in the memory of the buckets, and forms them anew. */
    VIEWS {
      @Override
      void run(Rank rank) {
        // Parameters 2 and 1 share a bucket at first, and after the first step 1 and 2 do.
        try (GradientReducer reducer = rank.reducer(rank.options.withBucketBytes(9, 9))) {
          rank.mutation.arm(rank.group.rank() == 0);
          for (int step = 0; step < 3; step++) {
            // In the first step, the host waits before it frees the old buckets.
            rank.mutation.except(step == 0 ? "awaitMeans" : "");
            for (int i : new int[] {1, 2, 0}) {
              rank.copy(reducer.gradient(i), rank.gradients.get(i));
              reducer.ready(i);
            }
            reducer.await();
            for (int i = 0; i < 3; i++) {
              rank.copy(rank.parameters.get(i), reducer.gradient(i));
            }
          }
          rank.mutation.arm(false);
        }
      }
    },

    /** Writes the gradients of one bucket in two streams, and copies them. */
    TWO_STREAMS {
      @Override
      void run(Rank rank) {
        ReducerOptions copying =
            rank.options.withBucketBytes(100, 100).withGradients(rank.gradients);
        try (GradientReducer reducer = rank.reducer(copying)) {
          rank.mutation.arm(rank.group.rank() == 0);
          for (int step = 0; step < 2; step++) {
            rank.other.waitFor(rank.own);
            try (CudaStream.Scope _ = rank.other.use()) {
              rank.write(2, reducer);
              rank.write(1, reducer);
            }
            rank.write(0, reducer);
            reducer.await();
            rank.copy(rank.parameters.get(0), rank.gradients.get(0));
          }
          rank.mutation.arm(false);
        }
      }
    },

    /** Zeroes gradients in another stream than that of await(). */
    ZEROES {
      @Override
      void run(Rank rank) {
        try (GradientReducer reducer = rank.reducer(rank.options)) {
          for (int step = 0; step < 2; step++) {
            for (int i : LAST_FIRST) {
              rank.copy(reducer.gradient(i), rank.gradients.get(i));
              reducer.ready(i);
            }
            reducer.await();
            rank.mutation.arm(rank.group.rank() == 0);
            try (CudaStream.Scope _ = rank.other.use()) {
              reducer.zeroGradients();
            }
            rank.mutation.arm(false);
            rank.own.waitFor(rank.other);
          }
        }
      }
    },

    /** Lets rank 0 join while rank 1 takes two more steps. */
    JOINS {
      @Override
      void run(Rank rank) {
        ReducerOptions uneven = rank.options.withUnevenInputs(Divisor.GROUP_SIZE);
        try (GradientReducer reducer = rank.reducer(uneven)) {
          for (int step = 0; step < 1 + 2 * rank.group.rank(); step++) {
            for (int i : LAST_FIRST) {
              rank.copy(reducer.gradient(i), rank.gradients.get(i));
              reducer.ready(i);
            }
            reducer.await();
          }
          // The broadcast of the parameters already comes after the last reduction.
          rank.mutation.except("zero");
          rank.mutation.arm(rank.group.rank() == 0);
          try (CudaStream.Scope _ = rank.other.use()) {
            reducer.join();
          }
          rank.mutation.arm(false);
          rank.own.waitFor(rank.other);
        }
      }
    },

    /** Accumulates in another stream what the reduced pass does not use. */
    UNUSED {
      @Override
      void run(Rank rank) {
        ReducerOptions unused =
            rank.options.withUnusedParameters().withAccumulation().withGradients(rank.gradients);
        try (GradientReducer reducer = rank.reducer(unused)) {
          rank.mutation.arm(rank.group.rank() == 0);
          for (int step = 0; step < 2; step++) {
            try (Registration _ = reducer.noSync()) {
              rank.other.waitFor(rank.own);
              try (CudaStream.Scope _ = rank.other.use()) {
                rank.write(0, reducer);
              }
              reducer.await();
            }
            rank.write(2, reducer);
            rank.write(1, reducer);
            reducer.await();
            rank.copy(rank.parameters.get(0), rank.gradients.get(0));
          }
          rank.mutation.arm(false);
        }
      }
    },

    /** Captures the third step into a graph. */
    CAPTURED {
      @Override
      void run(Rank rank) {
        try (GradientReducer reducer = rank.reducer(rank.options)) {
          rank.step(reducer);
          rank.step(reducer);
          GraphCalls graphs = rank.device.context().driver().graphs();
          // On both ranks, so that both capture the same collectives.
          rank.mutation.arm(true);
          graphs.beginCapture(rank.own.handle());
          rank.step(reducer);
          rank.mutation.arm(false);
          rank.device.context().enter();
          long graph = graphs.endCapture(rank.own.handle());
          long executable = graphs.instantiate(graph);
          graphs.launch(executable, rank.own.handle());
          graphs.launch(executable, rank.own.handle());
          graphs.destroy(graph);
          rank.own.await(Until.LONG);
          graphs.destroyExecutable(executable);
        }
      }
    };

    abstract void run(Rank rank);
  }

  /** Runs a program without one of the orders; returns the races and the number of orders. */
  private static List<String> races(Program program, Mutation mutation) throws Exception {
    try (FakeMachine machine = new FakeMachine(2)) {
      machine.fake.races().find();
      Mutation ofSecond = new Mutation(mutation.dropped);
      machine.fake.dropWaits(() -> mutation.drops() || ofSecond.drops());
      DeviceBuckets buckets = DeviceBuckets.of(machine);
      new CudaRanks(machine.cuda)
          .besideHost()
          .withTime(new Unwatched())
          .run(
              2,
              (group, device) -> {
                Mutation of = group.rank() == 0 ? mutation : ofSecond;
                program.run(new Rank(group, device, buckets, of));
              });
      machine.closeDriver();
      return machine.fake.races().found();
    } catch (TuttiException e) {
      // A capture's streams are not joined, or its replays wait for each other.
      return List.of(e.toString());
    }
  }

  @ParameterizedTest
  @EnumSource
  void everyOrderIsNeededAndNoneIsMissing(Program program) throws Exception {
    Mutation none = new Mutation(-1);
    assertThat(races(program, none)).isEmpty();
    assertThat(none.seen).as("orders").isPositive();
    for (int i = 0; i < none.seen; i++) {
      assertThat(races(program, new Mutation(i))).as("without order %d", i).isNotEmpty();
    }
  }
}
