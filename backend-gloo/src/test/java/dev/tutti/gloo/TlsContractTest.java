package dev.tutti.gloo;

import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.testing.AllGatherContract;
import dev.tutti.testing.AllReduceContract;
import dev.tutti.testing.AllToAllContract;
import dev.tutti.testing.BarrierContract;
import dev.tutti.testing.BroadcastContract;
import dev.tutti.testing.ContractSubject;
import dev.tutti.testing.GatherContract;
import dev.tutti.testing.ReduceContract;
import dev.tutti.testing.ReduceScatterContract;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/** Runs the contracts of all collectives with ranks that encrypt and have a token. */
class TlsContractTest
    implements AllReduceContract,
        BroadcastContract,
        ReduceContract,
        AllGatherContract,
        GatherContract,
        ReduceScatterContract,
        AllToAllContract,
        BarrierContract {
  private final Settings settings;

  TlsContractTest(@TempDir Path folder) {
    settings =
        new TlsWorld(folder, "authority")
            .settings(
                "rank", "TUTTI_GLOO_SHARED_BYTES", "0", "TUTTI_TOKEN", "the token of this job");
  }

  @Override
  public ContractSubject subject() {
    return new ContractSubject() {
      @Override
      public BackendProvider provider() {
        return new GlooProvider();
      }

      @Override
      public int[] worldSizes() {
        return new int[] {2, 4};
      }

      @Override
      public Settings settings() {
        return settings;
      }
    };
  }
}
