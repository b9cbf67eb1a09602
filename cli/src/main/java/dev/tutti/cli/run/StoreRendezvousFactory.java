package dev.tutti.cli.run;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.cli.store.StoreAddress;
import dev.tutti.cli.store.StoreKind;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.net.Loopback;
import java.net.InetAddress;
import java.time.Duration;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A factory that hosts the store of node 0 in this process, so that it does not die with a rank,
 * and connects the other nodes to it.
 */
public final class StoreRendezvousFactory implements LaunchRendezvousFactory {
  private static final String LOOPBACK = Loopback.host();

  /** How long the store may take to answer a launcher among several. */
  private static final Duration CALL_TIMEOUT = Duration.ofSeconds(10);

  @Override
  public LaunchRendezvous open(LaunchPlan plan, Consumer<String> messages) {
    Settings settings = Settings.ofEnvironment(plan.environment());
    try {
      StoreKind kind = StoreKind.of(settings.get(RuntimeSettings.STORE));
      if (plan.range().isPresent()) {
        return openMoving(kind, plan, plan.range().get(), settings, messages);
      }
      if (plan.nodeRank() > 0) {
        Store store = connectToNodeZero(kind, plan, settings, messages);
        return new StoreRendezvous(plan, store, plan.masterPort(), () -> {}, store::close);
      }
      StoreKind.Served served = kind.serve(listenAt(plan), plan.masterPort(), settings);
      if (plan.nodes() == 1) {
        announceAlone(kind, plan, settings);
        RankRange ranks = new RankRange(0, plan.localSize(), plan.masterAddress(), served.port());
        return new SingleNode(
            ranks,
            served,
            () -> served.deleteLeftovers(NodeKeys.PREFIX),
            () -> kind.connect(plan.masterAddress(), served.port(), CALL_TIMEOUT, settings));
      }
      Store store = connectForCalls(kind, plan, served.port(), settings);
      return new StoreRendezvous(
          plan,
          store,
          served.port(),
          () -> served.deleteLeftovers(NodeKeys.PREFIX),
          () -> {
            store.close();
            served.close();
          });
    } catch (StoreException e) {
      throw new LaunchException(1, e.getMessage() == null ? e.toString() : e.getMessage(), e);
    }
  }

  /**
   * Opens what nodes need that come and go: the store of node 0, or one that is served elsewhere.
   */
  private static LaunchRendezvous openMoving(
      StoreKind kind,
      LaunchPlan plan,
      NodeRange range,
      Settings settings,
      Consumer<String> messages) {
    int port = plan.masterPort();
    if (range.store().isPresent()) {
      Store store = connectElsewhere(range.store().get(), plan, settings, messages);
      return moving(plan, range, store, port, false, store::close);
    }
    if (plan.nodeRank() > 0) {
      Store store = connectToNodeZero(kind, plan, settings, messages);
      return moving(plan, range, store, port, false, store::close);
    }
    StoreKind.Served served = kind.serve(null, port, settings);
    Store store = connectForCalls(kind, plan, served.port(), settings);
    Runnable end =
        () -> {
          store.close();
          served.close();
        };
    return moving(plan, range, store, served.port(), true, end);
  }

  private static LaunchRendezvous moving(
      LaunchPlan plan, NodeRange range, Store store, int port, boolean serves, Runnable end) {
    RankRange place = new RankRange(0, 0, plan.masterAddress(), port);
    return new MovingNodes(
        plan,
        range,
        store,
        place,
        serves,
        end,
        StoreRendezvous.SILENCE,
        StoreRendezvous.WATCH_INTERVAL,
        Time.SYSTEM);
  }

  /** Notifies nodes that connect to a known port that they do not belong here. */
  private static void announceAlone(StoreKind kind, LaunchPlan plan, Settings settings) {
    if (plan.masterPort() > 0) {
      try (Store store = kind.connect(LOOPBACK, plan.masterPort(), CALL_TIMEOUT, settings)) {
        NodeMeeting.announceAlone(plan, NodeKeys.of(plan, store));
      }
    }
  }

  /** Returns the address to listen on; if only this host takes part, no other host can connect. */
  private static @Nullable InetAddress listenAt(LaunchPlan plan) {
    boolean local = plan.nodes() == 1 && plan.masterAddress().equals(LOOPBACK);
    return local ? InetAddress.ofLiteral(LOOPBACK) : null;
  }

  private static Store connectToNodeZero(
      StoreKind kind, LaunchPlan plan, Settings settings, Consumer<String> messages) {
    String text =
        "waiting %s (--rdzv-timeout) for node 0 to serve the store at %s"
            .formatted(
                Notice.atMost(plan.rendezvousTimeout()),
                new HostPort(plan.masterAddress(), plan.masterPort()));
    try (Notice _ = Notice.afterPatience(() -> messages.accept(text))) {
      return connectForCalls(kind, plan, plan.masterPort(), settings);
    }
  }

  /** Connects, as soon as there is one, to a store that no node serves, for calls that end soon. */
  private static Store connectElsewhere(
      String url, LaunchPlan plan, Settings settings, Consumer<String> messages) {
    String text =
        "waiting %s (--rdzv-timeout) for the store at %s"
            .formatted(Notice.atMost(plan.rendezvousTimeout()), url);
    try (Notice _ = Notice.afterPatience(() -> messages.accept(text));
        Store _ = StoreAddress.connect(url, plan.rendezvousTimeout(), settings)) {
      return StoreAddress.connect(url, CALL_TIMEOUT, settings);
    }
  }

  /**
   * Connects as soon as there is a store, for calls that each end soon: the thread that makes them
   * supervises the ranks, and a store that does not answer must not keep it from doing so.
   */
  private static Store connectForCalls(
      StoreKind kind, LaunchPlan plan, int port, Settings settings) {
    try (Store _ = connect(kind, plan, port, settings)) {
      return kind.connect(plan.masterAddress(), port, CALL_TIMEOUT, settings);
    }
  }

  /** Connects with the token that the ranks also find in their environment. */
  private static Store connect(StoreKind kind, LaunchPlan plan, int port, Settings settings) {
    return kind.connect(plan.masterAddress(), port, plan.rendezvousTimeout(), settings);
  }
}
