package dev.tutti.benchmarks;

import dev.tutti.CallOptions;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.fake.FakeProvider;
import dev.tutti.store.HashStore;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Times what the runtime adds to a backend: an all-reduce of one rank on the fake backend. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class RuntimeBenchmark {
  private final Tensor tensor = Tensor.of(1f);
  private ProcessGroup group;

  /** Joins a job of one rank. */
  @Setup
  public void join() {
    group =
        ProcessGroup.init(
            GroupOptions.DEFAULT
                .withStore(new HashStore())
                .withRank(0)
                .withSize(1)
                .withProvider(new FakeProvider()));
  }

  /** Leaves the job. */
  @TearDown
  public void leave() {
    group.close();
  }

  /** Runs on the caller's thread and allocates nothing. */
  @Benchmark
  public void synchronous() {
    group.allReduce(tensor);
  }

  /** Returns a work, which the caller awaits; runs on the group's thread. */
  @Benchmark
  public void asynchronous() {
    group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC).await();
  }
}
