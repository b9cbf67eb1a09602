package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Settings;
import dev.tutti.contracts.AbortContract;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.MismatchContract;
import dev.tutti.contracts.PointToPointContract;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.TimeoutContract;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** Runs the transport-dependent part of the contract on ranks that encrypt. */
@Sampled
class GlooTlsContractTest
    implements PointToPointContract, MismatchContract, TimeoutContract, AbortContract {
  private @Nullable Settings settings;

  @BeforeAll
  void issue(@TempDir Path folder) {
    settings =
        new TlsWorld(folder, "authority").settings("rank", GlooProvider.SHARED_BYTES.name(), "0");
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
        return new int[] {2, 3};
      }

      @Override
      public Capabilities capabilities() {
        return provider().capabilities("cpu").without(Set.of(Feature.SYMMETRIC_MEMORY));
      }

      @Override
      public Settings settings() {
        return Objects.requireNonNull(settings);
      }
    };
  }
}
