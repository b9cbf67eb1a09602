package dev.tutti.aeron.cluster.session;

import dev.tutti.aeron.cluster.member.CallNumbers;
import dev.tutti.aeron.cluster.member.ClusterEgress;
import dev.tutti.aeron.cluster.member.ClusterLogs;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.client.EgressListener;
import io.aeron.logbuffer.Header;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.agrona.CloseHelper;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A probe that finds out whether a cluster answers others while it is silent for a session; used
 * under the lock of that session.
 */
final class ClusterProbe implements EgressListener, AutoCloseable {
  /*
   * A cluster whose members have all restarted has none of its old sessions, and cannot notify
   * them. A client that receives nothing therefore opens a second session and asks on both. If
   * repeatedly only the second one is answered, the first session is over.
   */
  private static final Logger LOG = System.getLogger(ClusterLogs.CLIENT);
  private static final long ASK_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int ENOUGH = 3;

  private final Opening opening;
  private final FrameReader reader;
  private final FrameWriter writer;
  private final UnsafeBuffer nothing = new UnsafeBuffer(new byte[0]);
  private AeronCluster.@Nullable AsyncConnect connecting;
  private @Nullable AeronCluster cluster;
  private long lastAsk;
  private boolean isAsked;
  private int answers;

  /**
   * Creates a probe that does nothing yet.
   *
   * @param opening the opener of sessions
   * @param session the number of the second session
   */
  ClusterProbe(Opening opening, long session) {
    this.opening = opening;
    this.lastAsk = System.nanoTime() - ASK_NANOS;
    this.reader = new FrameReader(session, (code, call, body) -> answered());
    this.writer =
        new FrameWriter(
            (head, body, at, bytes) ->
                Objects.requireNonNull(cluster).offer(head, 0, Protocol.HEADER_BYTES),
            ClusterEgress.FRAME_BYTES,
            session);
  }

  /** An opener of sessions. */
  interface Opening {
    /** Begins to open a session. */
    AeronCluster.AsyncConnect begin(EgressListener listener) throws IOException;
  }

  private void answered() {
    if (isAsked) {
      isAsked = false;
      answers++;
    }
  }

  /**
   * Continues asking.
   *
   * @param now the time, in nanoseconds
   * @return whether the cluster has answered the second session often enough
   */
  boolean isAnswered(long now) {
    try {
      AeronCluster second = cluster;
      if (second == null) {
        connect(now);
      } else {
        ask(second, now);
      }
    } catch (IOException | RuntimeException e) {
      LOG.log(Level.DEBUG, "cannot determine whether a store cluster serves others", e);
      close();
      lastAsk = now;
    }
    return answers >= ENOUGH;
  }

  private void connect(long now) throws IOException {
    AeronCluster.AsyncConnect current = connecting;
    if (current == null) {
      if (now - lastAsk < ASK_NANOS) {
        return;
      }
      current = opening.begin(this);
      connecting = current;
    }
    cluster = current.poll();
    if (cluster != null) {
      connecting = null;
    }
  }

  private void ask(AeronCluster second, long now) {
    second.pollEgress();
    if (second.isClosed()) {
      close();
    } else if (now - lastAsk > ASK_NANOS) {
      lastAsk = now;
      isAsked = true;
      second.sendKeepAlive();
      var _ = writer.write(Protocol.CANCEL, CallNumbers.PROBE, nothing, 0, 0);
    }
  }

  @Override
  public void onMessage(
      long clusterSession,
      long timestamp,
      DirectBuffer buffer,
      int offset,
      int length,
      Header header) {
    reader.onFragment(buffer, offset, length, header);
  }

  /** Ends the second session, and forgets the answers. */
  @Override
  public void close() {
    CloseHelper.quietCloseAll(connecting, cluster);
    connecting = null;
    cluster = null;
    isAsked = false;
    answers = 0;
  }
}
