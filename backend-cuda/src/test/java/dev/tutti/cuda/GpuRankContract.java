package dev.tutti.cuda;

import dev.tutti.GroupOptions;
import dev.tutti.contracts.AllGatherContract;
import dev.tutti.contracts.AllReduceContract;
import dev.tutti.contracts.AllToAllContract;
import dev.tutti.contracts.ArgumentsContract;
import dev.tutti.contracts.BatchContract;
import dev.tutti.contracts.BroadcastContract;
import dev.tutti.contracts.CapabilitiesContract;
import dev.tutti.contracts.ConcurrencyContract;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.GatherContract;
import dev.tutti.contracts.ListenerContract;
import dev.tutti.contracts.MismatchContract;
import dev.tutti.contracts.ObjectContract;
import dev.tutti.contracts.PointToPointContract;
import dev.tutti.contracts.ReduceContract;
import dev.tutti.contracts.ReduceScatterContract;
import dev.tutti.contracts.SubgroupContract;
import dev.tutti.contracts.UnevenPartsContract;
import dev.tutti.cuda.provider.NcclBackendProvider;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Runs the parts of the contract that ranks in several processes can share, as one of two ranks;
 * {@link GpuProcessesTest} starts both. The system properties {@value #RANK}, {@value #DIRECTORY}
 * and {@value #NCCL} specify the rank, where the groups rendezvous, and whether they use NCCL.
 */
@ExtendWith(Gpu.class)
class GpuRankContract
    implements AllReduceContract,
        BroadcastContract,
        ReduceContract,
        AllGatherContract,
        GatherContract,
        ReduceScatterContract,
        UnevenPartsContract,
        AllToAllContract,
        PointToPointContract,
        ObjectContract,
        BatchContract,
        ListenerContract,
        ConcurrencyContract,
        MismatchContract,
        SubgroupContract,
        ArgumentsContract,
        CapabilitiesContract {
  static final String RANK = "rank";
  static final String DIRECTORY = "directory";
  static final String NCCL = "nccl";
  static final int RANKS = 2;

  private static final AtomicInteger WORLDS = new AtomicInteger();

  @Override
  public ContractSubject subject() {
    return new OneRank();
  }

  private static final class OneRank extends CudaSubject {
    OneRank() {
      super(
          Cuda.get(),
          RANKS,
          Map.of("TUTTI_CLOSE_TIMEOUT", "10s", "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1"));
    }

    @Override
    public int[] worldSizes() {
      return new int[] {RANKS};
    }

    @Override
    public BackendProvider provider() {
      return Boolean.getBoolean(NCCL) ? new NcclBackendProvider() : super.provider();
    }

    @Override
    public boolean dividesTheSum() {
      return !Boolean.getBoolean(NCCL);
    }

    @Override
    public boolean nanWins() {
      return !Boolean.getBoolean(NCCL);
    }

    @Override
    public OptionalInt onlyRank() {
      return OptionalInt.of(Integer.getInteger(RANK));
    }

    @Override
    public GroupOptions options(GroupOptions options) {
      Path meeting = Path.of(System.getProperty(DIRECTORY), "world-" + WORLDS.incrementAndGet());
      return super.options(options).withInitMethod("file://" + meeting);
    }
  }
}
