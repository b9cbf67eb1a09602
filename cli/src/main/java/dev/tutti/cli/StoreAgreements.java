package dev.tutti.cli;

import com.google.inject.Inject;
import dev.tutti.Settings;
import dev.tutti.StoreException;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.TcpStore;
import dev.tutti.store.TcpStoreOptions;
import dev.tutti.store.TcpStoreServer;
import java.net.InetAddress;
import org.jspecify.annotations.Nullable;

/**
 * Hosts the store of node 0 in this process, so that no rank takes it along when it dies, and
 * connects the other nodes to it.
 */
final class TcpAgreements implements Agreements {
  private static final String LOOPBACK = "127.0.0.1";

  /** Keeps the launchers' keys apart from those of the ranks. */
  private static final String PREFIX = "tutti-run";

  @Inject
  TcpAgreements() {}

  @Override
  public Agreement open(LaunchPlan plan) {
    try {
      if (plan.nodeRank() > 0) {
        TcpStore store = connect(plan, plan.masterPort());
        return agreement(plan, store, plan.masterPort(), store::close);
      }
      TcpStoreServer server = new TcpStoreServer(listenAt(plan), plan.masterPort(), token(plan));
      if (plan.nodes() == 1) {
        Cohort cohort = new Cohort(0, plan.localSize(), plan.masterAddress(), server.port());
        return new SingleNode(cohort, server);
      }
      TcpStore store = connect(plan, server.port());
      return agreement(
          plan,
          store,
          server.port(),
          () -> {
            store.close();
            server.close();
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

  private static TcpStore connect(LaunchPlan plan, int port) {
    return new TcpStore(
        TcpStoreOptions.of(plan.masterAddress(), port)
            .withWaitForWorkers(false)
            .withTimeout(plan.rendezvousTimeout())
            .withToken(token(plan)));
  }

  /** Returns what the ranks find in their environment too. */
  private static JobToken token(LaunchPlan plan) {
    return Settings.ofEnvironment(plan.environment()).get(JobToken.SETTING);
  }

  private static Agreement agreement(LaunchPlan plan, TcpStore store, int port, Runnable leave) {
    return new StoreAgreement(plan, new PrefixStore(PREFIX, store), port, leave);
  }
}
