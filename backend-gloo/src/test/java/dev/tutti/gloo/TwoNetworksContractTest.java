package dev.tutti.gloo;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.contracts.Sampled;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/** Runs the contract suite with two ranks in each of two network namespaces. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Sampled
class TwoNetworksContractTest extends GlooContractTest {
  private @Nullable NetworkNamespaces hosts;

  @TempDir Path directory;

  @BeforeAll
  void lay() throws Exception {
    hosts = NetworkNamespaces.create();
  }

  @AfterAll
  void remove() throws Exception {
    if (hosts != null) {
      hosts.close();
    }
  }

  /** Returns the host of a rank of the group of all ranks. */
  int hostOf(int rank) {
    return rank / 2;
  }

  @Override
  protected BackendProvider provider() {
    NetworkNamespaces networks = Objects.requireNonNull(hosts);
    return new HostsProvider(directory, this::hostOf) {
      @Override
      public Backend create(BackendContext context) throws Exception {
        int host = hostOf(context.globalRanks().get(context.rank()));
        BackendContext inside = inside(context, networks.address(1 - host));
        return NamespaceThread.call(networks.name(host), () -> super.create(inside));
      }
    };
  }

  private static BackendContext inside(BackendContext context, String otherHost) {
    // The JDK looks up interfaces in the network namespace of the process, but routes in that of
    // the thread.
    return context.withSettings(
        context
            .settings()
            .with(BindAddress.INTERFACE, "")
            .with(BindAddress.MASTER_ADDR, otherHost));
  }

  @Override
  protected int[] worldSizes() {
    return new int[] {4};
  }

  @Override
  protected Capabilities capabilities() {
    return super.capabilities().without(Set.of(Feature.SYMMETRIC_MEMORY));
  }
}
