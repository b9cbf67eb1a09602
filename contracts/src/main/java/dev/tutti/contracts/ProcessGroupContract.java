package dev.tutti.contracts;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.time.Duration;
import java.util.List;

/**
 * Tests that a backend fulfills the contract of {@link dev.tutti.ProcessGroup}, with ranks as
 * threads of this JVM.
 *
 * <p>A third party extends this class and implements one method, {@link #provider()}. Every test
 * runs once for each number of ranks, each time on new groups. Tests of what the backend does not
 * declare are skipped with the reason, and other tests check that such calls are refused. The suite
 * assumes that the backend moves float32 and int32, sums them if it reduces at all, and has an
 * all-reduce, a barrier or a broadcast. A class that needs only some of the tests implements the
 * parts, such as {@link AllReduceContract}, directly.
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
        UnevenPartsContract,
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

  /** Returns the backend under test; called more than once. */
  protected abstract BackendProvider provider();

  /** Returns the numbers of ranks to test with. */
  protected int[] worldSizes() {
    return new int[] {1, 2, 3, 4};
  }

  /**
   * Returns the deadline of one test body on all ranks; its groups have half of that as their
   * deadline.
   */
  protected Duration timeout() {
    return Duration.ofMinutes(2);
  }

  /** Returns the settings of the groups. */
  protected Settings settings() {
    return Settings.fromEnvironment();
  }

  /**
   * Returns the capabilities of the groups, for settings that take away some of what the provider
   * declares.
   */
  protected Capabilities capabilities() {
    return provider().capabilities(Device.CPU.type());
  }

  /** Returns whether mismatches are detected; see {@link ContractSubject#detectsMismatches}. */
  protected boolean detectsMismatches() {
    return true;
  }

  /** Returns whether AVG divides the sum; see {@link ContractSubject#dividesTheSum}. */
  protected boolean dividesTheSum() {
    return true;
  }

  /** Returns whether a NaN wins in MIN and MAX; see {@link ContractSubject#nanWins}. */
  protected boolean nanWins() {
    return true;
  }

  /** Returns the prefixes of shared threads' names; see {@link ContractSubject#sharedThreads}. */
  protected List<String> sharedThreads() {
    return List.of();
  }

  /** Returns the subject of the tests; to be overridden if tensors are not in host memory. */
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
      public boolean nanWins() {
        return ProcessGroupContract.this.nanWins();
      }

      @Override
      public List<String> sharedThreads() {
        return ProcessGroupContract.this.sharedThreads();
      }
    };
  }
}
