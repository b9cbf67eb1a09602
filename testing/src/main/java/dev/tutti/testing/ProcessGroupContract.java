package dev.tutti.testing;

import dev.tutti.Capabilities;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.List;

/**
 * Tests that a backend keeps the promises of {@link dev.tutti.ProcessGroup}, with ranks as threads
 * of this JVM.
 *
 * <p>A third party extends this class with one method, {@link #provider()}. Every test runs once
 * for each number of ranks, on new groups. What the backend does not declare is skipped with the
 * reason, and it is tested that calls of it are refused. The suite takes for granted that the
 * backend moves float32 and int32, sums them if it reduces at all, and has an all-reduce, a barrier
 * or a broadcast. A class that wants only some of it implements the parts, such as {@link
 * AllReduceContract}, by itself.
 *
 * {@snippet file="ThreadedContractTest.java" region="suite"}
 */
public abstract class ProcessGroupContract
    implements AllReduceContract,
        SparseAllReduceContract,
        BroadcastContract,
        ReduceContract,
        AllGatherContract,
        GatherContract,
        ReduceScatterContract,
        AllToAllContract,
        PointToPointContract,
        BarrierContract,
        ObjectContract,
        BatchContract,
        WorkContract,
        ListenerContract,
        ConcurrencyContract,
        InterruptContract,
        SubgroupContract,
        SymmetricMemoryContract,
        ArgumentsContract,
        MismatchContract,
        CapabilitiesContract,
        TimeoutContract,
        AbortContract,
        CloseContract {
  /** Creates the suite. */
  protected ProcessGroupContract() {}

  /** Returns the backend under test; asked more than once. */
  protected abstract BackendProvider provider();

  /** Returns the numbers of ranks to test with. */
  protected int[] worldSizes() {
    return new int[] {1, 2, 3, 4};
  }

  /** Returns the deadline of one test body on all ranks; that of its groups is half of it. */
  protected Duration timeout() {
    return Duration.ofMinutes(2);
  }

  /** Returns the settings of the groups. */
  protected Settings settings() {
    return Settings.fromEnvironment();
  }

  /** Returns what the groups can do, where the settings take away what the provider declares. */
  protected Capabilities capabilities() {
    return provider().capabilities();
  }

  /** Tells what {@link ContractSubject#detectsMismatches} tells. */
  protected boolean detectsMismatches() {
    return true;
  }

  /** Tells what {@link ContractSubject#dividesTheSum} tells. */
  protected boolean dividesTheSum() {
    return true;
  }

  /** Returns what {@link ContractSubject#sharedThreads} returns. */
  protected List<String> sharedThreads() {
    return List.of();
  }

  /** Returns what is tested; to be overridden where tensors are not in host memory. */
  @Override
  public ContractSubject subject() {
    return new ContractSubject() {
      @Override
      public BackendProvider provider() {
        return ProcessGroupContract.this.provider();
      }

      @Override
      public int[] worldSizes() {
        return ProcessGroupContract.this.worldSizes();
      }

      @Override
      public Duration timeout() {
        return ProcessGroupContract.this.timeout();
      }

      @Override
      public Settings settings() {
        return ProcessGroupContract.this.settings();
      }

      @Override
      public Capabilities capabilities() {
        return ProcessGroupContract.this.capabilities();
      }

      @Override
      public boolean detectsMismatches() {
        return ProcessGroupContract.this.detectsMismatches();
      }

      @Override
      public boolean dividesTheSum() {
        return ProcessGroupContract.this.dividesTheSum();
      }

      @Override
      public List<String> sharedThreads() {
        return ProcessGroupContract.this.sharedThreads();
      }
    };
  }
}
