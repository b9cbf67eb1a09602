package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.server.Outbox;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import io.aeron.Aeron;
import io.aeron.DirectBufferVector;
import io.aeron.Publication;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import io.aeron.cluster.codecs.SessionMessageHeaderEncoder;
import io.aeron.cluster.service.ClientSession;
import io.aeron.exceptions.AeronException;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** The leader's replies to one client; used by the thread of the state machine. */
public final class ClusterEgress implements AutoCloseable {
  /*
   * Aeron's own way of answering a client does not work between two messages of the log, which is
   * when replies that had no room are sent. The leader therefore has its own publication.
   *
   * A read for whose answer there is no more room fails, and its client continues. Other answers
   * are kept by their slots anyway.
   */
  public static final int FRAME_BYTES = 7 * 1024;

  private static final long HIGH_WATER = 256 << 20;
  private static final long STUCK_NANOS = 30_000_000_000L;

  private final Aeron aeron;
  private final long highWater;
  private final long registration;
  private final Outbox outbox;
  private final UnsafeBuffer header =
      new UnsafeBuffer(new byte[AeronCluster.SESSION_HEADER_LENGTH]);
  private final DirectBufferVector[] vectors = {
    new DirectBufferVector(header, 0, AeronCluster.SESSION_HEADER_LENGTH),
    new DirectBufferVector(),
    new DirectBufferVector()
  };
  private @Nullable Publication publication;
  private boolean ended;

  ClusterEgress(Aeron aeron, ClientSession client, long session) {
    this(aeron, client, session, HIGH_WATER);
  }

  /** Creates an egress with room for the given number of bytes of replies. */
  ClusterEgress(Aeron aeron, ClientSession client, long session, long highWater) {
    this.aeron = aeron;
    this.highWater = highWater;
    this.registration =
        aeron.asyncAddPublication(client.responseChannel(), client.responseStreamId());
    this.outbox = new Outbox(new FrameWriter(this::offer, FRAME_BYTES, session), () -> {});
    new SessionMessageHeaderEncoder()
        .wrapAndApplyHeader(header, 0, new MessageHeaderEncoder())
        .clusterSessionId(client.id());
  }

  private long offer(UnsafeBuffer head, DirectBuffer body, int at, int bytes) {
    if (publication == null) {
      publication = aeron.getPublication(registration);
      if (publication == null) {
        return Publication.NOT_CONNECTED;
      }
    }
    vectors[1].reset(head, 0, Protocol.HEADER_BYTES);
    vectors[2].reset(bytes == 0 ? head : body, bytes == 0 ? 0 : at, bytes); // none may be empty
    return publication.offer(vectors);
  }

  /** Returns whether there is room for a reply of the given number of bytes. */
  boolean hasRoom(int length) {
    return !outbox.isBehind() || outbox.bytes() + length <= highWater;
  }

  void send(int code, long call, DirectBuffer body, int length) {
    if (ended) {
      return;
    }
    try {
      outbox.send(code, call, body, length);
    } catch (FrameWriter.ClosedStreamException | AeronException e) {
      end();
    }
  }

  /** Sends replies that had no room before; returns how many. */
  int flush() {
    if (ended || !outbox.isBehind()) {
      return 0;
    }
    try {
      int sent = outbox.flush();
      if (outbox.isStuck(System.nanoTime(), STUCK_NANOS)) {
        end();
      }
      return sent;
    } catch (FrameWriter.ClosedStreamException | AeronException e) {
      end();
      return 1;
    }
  }

  /** Stops answering, because the client does not read. */
  private void end() {
    ended = true;
    outbox.clear();
  }

  @Override
  public void close() {
    end();
    if (publication != null) {
      publication.close();
    } else {
      aeron.asyncRemovePublication(registration);
    }
  }
}
