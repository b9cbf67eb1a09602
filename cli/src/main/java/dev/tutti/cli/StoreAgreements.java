package dev.tutti.cli;

import com.google.inject.Inject;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.internal.RuntimeSettings;
import java.net.InetAddress;
import org.jspecify.annotations.Nullable;

/**
 * Hosts the store of node 0 in this process, so that no rank takes it along when it dies, and
 * connects the other nodes to it.
 */
final class StoreAgreements implements Agreements {
  private static final String LOOPBACK = "127.0.0.1";

  @Inject
  StoreAgreements() {}

  @Override
  public Agreement open(LaunchPlan plan) {
    Settings settings = Settings.ofEnvironment(plan.environment());
    try {
      StoreKind kind = StoreKind.of(settings.get(RuntimeSettings.STORE));
      if (plan.nodeRank() > 0) {
        Store store = connect(kind, plan, plan.masterPort(), settings);
        return new StoreAgreement(plan, store, plan.masterPort(), store::close);
      }
      StoreKind.Served served = kind.serve(listenAt(plan), plan.masterPort(), settings);
      if (plan.nodes() == 1) {
        Cohort cohort = new Cohort(0, plan.localSize(), plan.masterAddress(), served.port());
        return new SingleNode(cohort, served, () -> connect(kind, plan, served.port(), settings));
      }
      Store store = connect(kind, plan, served.port(), settings);
      return new StoreAgreement(
          plan,
          store,
          served.port(),
          () -> {
            store.close();
            served.close();
          });
    } catch (StoreException e) {
      throw new LaunchException(1, e.getMessage() == null ? e.toString() : e.getMessage(), e);
    }
  }

  /** Returns the address to listen at: where only this host takes part, nobody else can connect. */
  private static @Nullable InetAddress listenAt(LaunchPlan plan) {
    boolean local = plan.nodes() == 1 && plan.masterAddress().equals(LOOPBACK);
    return local ? InetAddress.ofLiteral(LOOPBACK) : null;
  }

  /** Connects with the token that the ranks find in their environment too. */
  private static Store connect(StoreKind kind, LaunchPlan plan, int port, Settings settings) {
    return kind.connect(plan.masterAddress(), port, plan.rendezvousTimeout(), settings);
  }
}
