package dev.tutti.aeron.server;

import dev.tutti.StoreException;
import dev.tutti.aeron.driver.Doorbell;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.Control;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Handshake;
import dev.tutti.aeron.wire.LogNames;
import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.Time;
import dev.tutti.store.table.ServerMemory;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The server's state of one client; used only by the server's thread. */
public final class ServerClient extends Caller {
  /*
   * Replies for which there is no room wait here. The server does not read from a client with many
   * waiting replies, and drops one that takes none for a while; no other client is affected.
   */
  private static final Logger LOG = System.getLogger(LogNames.SERVER);
  private static final long HIGH_WATER = 1 << 20;
  private static final int FRAMES_AT_ONCE = 16;

  final String peer;
  final Control control;
  private final Subscription requests;
  private final ExclusivePublication replies;
  private final @Nullable Doorbell bell;
  private final FrameReader reader;
  private final Outbox outbox;
  private final ByteBuffer received = ByteBuffer.allocate(64);
  private @Nullable SocketChannel channel;
  private final Map<Long, Long> heldByCalls = new HashMap<>();
  private ServerMemory.Client memory = new ServerMemory(Long.MAX_VALUE, Time.SYSTEM).client();
  private @Nullable String lost;

  public ServerClient(
      Control control,
      long session,
      Subscription requests,
      ExclusivePublication replies,
      @Nullable Doorbell bell,
      Requests handler) {
    this.control = control;
    this.peer = control.peer();
    this.requests = requests;
    this.replies = replies;
    this.bell = bell;
    this.reader =
        new FrameReader(session, Protocol.MAX_BODY_BYTES, new Messages(handler), this::count);
    this.outbox = new Outbox(new FrameWriter(replies, session), this::ring, this::count);
  }

  /** The receiver of the client's requests. */
  private final class Messages implements FrameReader.Messages {
    private final Requests handler;

    Messages(Requests handler) {
      this.handler = handler;
    }

    @Override
    public void take(int code, long call, BodyReader body) {
      handler.run(ServerClient.this, code, call, body);
    }

    @Override
    public void refuse(long call, StoreException why) {
      ServerClient.this.refuse(call, why, new BodyWriter());
    }
  }

  /** Sets the account that records, from now on, what this client makes the server hold. */
  void count(ServerMemory.Client account) {
    memory = account;
  }

  /** Returns the account of what this client makes the server hold. */
  ServerMemory.Client memory() {
    return memory;
  }

  private void count(long bytes) {
    if (bytes > 0) {
      memory.take(bytes);
    } else {
      memory.give(-bytes);
    }
  }

  @Override
  void hold(long call, long bytes) {
    memory.take(bytes);
    heldByCalls.put(call, bytes);
  }

  @Override
  void release(long call) {
    memory.give(Objects.requireNonNullElse(heldByCalls.remove(call), 0L));
  }

  /** Returns the host of the client. */
  String address() {
    return control.remoteAddress().getHostAddress();
  }

  /** Returns whether replies are waiting for room. */
  boolean isBehind() {
    return outbox.isBehind();
  }

  /** Registers the control connection with a selector. */
  void register(Selector selector) throws IOException {
    channel = control.withoutBlocking();
    channel.register(selector, SelectionKey.OP_READ, this);
  }

  /**
   * Reads what the client sends; returns false if the client closes, or at the end of the
   * connection.
   */
  boolean readControl() throws IOException {
    int count = Objects.requireNonNull(channel).read(received.clear());
    for (int i = 0; i < count; i++) {
      if (received.get(i) != Handshake.GOODBYE) {
        throw new MalformedMessageException("it sent an unknown byte: " + received.get(i));
      }
      wills.clear();
    }
    return count == 0;
  }

  /** Returns whether the client wakes a thread that sleeps in the server's bell. */
  boolean canWake() {
    return bell != null && bell.canWake();
  }

  /** Sends waiting replies and takes new requests; returns how much there was to do. */
  int work() {
    int done = flush();
    if (outbox.bytes() < HIGH_WATER && lost == null) {
      try {
        done += requests.poll(reader, FRAMES_AT_ONCE);
      } catch (MalformedMessageException e) {
        lost = String.valueOf(e.getMessage());
      }
    }
    return done;
  }

  /** Returns the reason to drop this client, or null. */
  @Nullable String lost(long now, long stuckNanos) {
    if (lost == null && outbox.isStuck(now, stuckNanos)) {
      lost =
          "it has not read its replies for %d s; %d bytes are pending"
              .formatted(stuckNanos / 1_000_000_000L, outbox.bytes());
    }
    return lost;
  }

  @Override
  public void reply(int code, long call, BodyWriter body) {
    if (lost != null) {
      return;
    }
    try {
      outbox.send(code, call, body.buffer(), body.length());
    } catch (FrameWriter.ClosedStreamException e) {
      lost = "its stream ended: " + e.getMessage();
    } catch (StoreException e) {
      // The request may come from another client, whose change must reach the others too.
      lost = e.getMessage();
    } catch (OutOfMemoryError e) {
      lost = e + "; check -Xmx";
    }
  }

  private int flush() {
    if (lost != null) {
      return 0;
    }
    try {
      return outbox.flush();
    } catch (FrameWriter.ClosedStreamException e) {
      lost = "its stream ended: " + e.getMessage();
      return 0;
    }
  }

  private void ring() {
    if (bell != null) {
      bell.ring();
    }
  }

  /** Ends the session of a client that must be notified that the server is closing. */
  void leave() {
    try {
      if (channel != null) {
        channel.write(received.clear().put((byte) Handshake.GOODBYE).flip());
      }
    } catch (IOException e) {
      LOG.log(Level.DEBUG, "a client is gone", e);
    }
    close();
  }

  /** Ends the session. */
  public void close() {
    memory.close();
    dropAll();
    outbox.clear();
    control.close();
    requests.close();
    replies.close();
  }
}
