package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Settings;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.fuzz.FuzzContract;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/** Runs random programs over each medium through which Gloo ranks communicate. */
@Order(1)
class GlooProgramsTest {
  private static final int[] SIZES = {2, 3, 4, 5};

  private static ContractSubject subject(
      BackendProvider provider, Settings settings, Set<Feature> missing, int... sizes) {
    return new ContractSubject() {
      @Override
      public BackendProvider provider() {
        return provider;
      }

      @Override
      public Settings settings() {
        return settings;
      }

      @Override
      public Capabilities capabilities() {
        return provider.capabilities("cpu").without(missing);
      }

      @Override
      public int[] worldSizes() {
        return sizes;
      }
    };
  }

  @Nested
  class SharedMemory implements FuzzContract {
    @Override
    public ContractSubject subject() {
      return GlooProgramsTest.subject(new GlooProvider(), GlooWorld.settings(), Set.of(), SIZES);
    }
  }

  @Nested
  class Sockets implements FuzzContract {
    @Override
    public ContractSubject subject() {
      return GlooProgramsTest.subject(
          new GlooProvider(),
          GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), "0"),
          Set.of(Feature.SYMMETRIC_MEMORY),
          SIZES);
    }
  }

  /** Encrypts the traffic on sockets. */
  @Nested
  @TestInstance(Lifecycle.PER_CLASS)
  class Tls implements FuzzContract {
    private Settings settings = Settings.ofEnvironment(java.util.Map.of());

    @BeforeAll
    void issue(@TempDir Path folder) {
      settings =
          new TlsWorld(folder, "authority").settings("rank", GlooProvider.SHARED_BYTES.name(), "0");
    }

    @Override
    public ContractSubject subject() {
      return GlooProgramsTest.subject(
          new GlooProvider(), settings, Set.of(Feature.SYMMETRIC_MEMORY), SIZES);
    }
  }

  /** Hosts with two ranks each; if the number of ranks is odd, one host has a single rank. */
  @Nested
  class TwoLevels implements FuzzContract {
    @TempDir Path directory;

    @Override
    public ContractSubject subject() {
      return GlooProgramsTest.subject(
          new HostsProvider(directory, rank -> rank / 2),
          GlooWorld.settings(),
          Set.of(Feature.SYMMETRIC_MEMORY),
          3,
          4,
          5,
          6);
    }
  }
}
