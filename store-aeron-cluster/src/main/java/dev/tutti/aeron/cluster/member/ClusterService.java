package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.server.RequestHandler;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.codecs.CloseReason;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import io.aeron.cluster.service.ClusteredService;
import io.aeron.logbuffer.Header;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.AgentTerminationException;
import org.jspecify.annotations.Nullable;

/** The store as a state machine: each member runs one on the same log of requests. */
final class ClusterService implements ClusteredService {
  /*
   * Everything that happens depends on nothing but the log. Deadlines are up to the clients, which
   * cancel their calls by a request, and Aeron writes into the log when a client has been silent
   * for too long. Only the leader answers.
   *
   * An Error ends the member: the others had the memory, and this one must not continue with a
   * state that differs from theirs. Aeron reports only an AgentTerminationException to the rest of
   * the member.
   */
  private static final Logger LOG = System.getLogger(ClusterLogs.SERVER);

  final Map<Long, ClusterCaller> callers = new TreeMap<>();
  private final RequestHandler commands = new RequestHandler();
  private final LimitedLog log = new LimitedLog(LOG, Time.SYSTEM);
  private @Nullable Cluster cluster;
  private boolean leads;
  private long orders;
  private volatile long snapshotPosition;
  private volatile int clients;

  RequestHandler commands() {
    return commands;
  }

  /** Returns a writer and reader of this state. */
  ClusterSnapshot state() {
    return new ClusterSnapshot(commands.table(), callers, this::add);
  }

  /** Returns the log position of the last snapshot. */
  long snapshotPosition() {
    return snapshotPosition;
  }

  /** Returns the number of clients; called by any thread. */
  int clients() {
    return clients;
  }

  private Cluster cluster() {
    return Objects.requireNonNull(cluster);
  }

  /** Runs a task that Aeron requests; an Error ends this member. */
  private static void orEnd(Runnable task) {
    try {
      task.run();
    } catch (Error e) {
      throw new AgentTerminationException(e);
    }
  }

  @Override
  public void onStart(Cluster here, @Nullable Image snapshot) {
    cluster = here;
    if (snapshot != null) {
      orEnd(() -> state().load(here, snapshot));
      snapshotPosition = here.logPosition();
    }
  }

  @Override
  public void onSessionOpen(ClientSession client, long timestamp) {
    orEnd(
        () -> {
          ClusterCaller caller = add(client);
          if (leads) {
            caller.answerThrough(egress(client));
          }
        });
  }

  private ClusterCaller add(ClientSession client) {
    ClusterCaller caller = new ClusterCaller(client, commands, () -> ++orders);
    callers.put(client.id(), caller);
    clients = callers.size();
    return caller;
  }

  private ClusterEgress egress(ClientSession client) {
    return new ClusterEgress(cluster().aeron(), client, ClusterCaller.session(client));
  }

  @Override
  public void onSessionClose(ClientSession client, long timestamp, CloseReason reason) {
    ClusterCaller caller = callers.remove(client.id());
    clients = callers.size();
    if (caller != null) {
      LOG.log(Level.DEBUG, "client {0} left: {1}", client.id(), reason);
      orEnd(
          () -> {
            caller.answerThrough(null);
            caller.dropAll();
            commands.execute(caller.wills.values());
          });
    }
  }

  @Override
  public void onSessionMessage(
      @Nullable ClientSession client,
      long timestamp,
      DirectBuffer buffer,
      int offset,
      int length,
      Header header) {
    ClusterCaller caller = client == null ? null : callers.get(client.id());
    if (caller == null || caller.dropped) {
      return;
    }
    try {
      caller.reader.onFragment(buffer, offset, length, header);
    } catch (MalformedMessageException e) {
      log.warn(
          "bad request",
          "",
          "client %d is dropped: %s".formatted(caller.client.id(), e.getMessage()));
      caller.dropped = true;
      caller.client.close();
    } catch (Error e) {
      throw new AgentTerminationException(e);
    }
  }

  @Override
  public void onTimerEvent(long correlationId, long timestamp) {}

  @Override
  public void onTakeSnapshot(ExclusivePublication snapshot) {
    orEnd(() -> state().save(cluster(), snapshot));
    snapshotPosition = cluster().logPosition();
  }

  @Override
  public void onRoleChange(Cluster.Role role) {
    leads = role == Cluster.Role.LEADER;
    orEnd(
        () -> {
          for (ClusterCaller caller : callers.values()) {
            caller.answerThrough(leads ? egress(caller.client) : null);
          }
        });
  }

  @Override
  public int doBackgroundWork(long now) {
    int done = 0;
    try {
      if (leads) {
        for (ClusterCaller caller : callers.values()) {
          done += caller.flush();
        }
      }
    } catch (Error e) {
      throw new AgentTerminationException(e);
    }
    return done;
  }

  @Override
  public void onTerminate(Cluster here) {
    onRoleChange(Cluster.Role.FOLLOWER);
  }
}
