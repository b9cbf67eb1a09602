package dev.tutti.tls;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;

/**
 * A channel that encrypts a socket's traffic with TLS, and never blocks. Used by one thread at a
 * time.
 */
public final class TlsChannel implements ByteChannel {
  /*
   * Encrypted bytes that have come wait in netIn, those to be sent wait in netOut, and decrypted
   * bytes that did not fit in the reader's buffer wait in plain. There may therefore be something
   * to read although the socket has nothing (hasBuffered), and something to be sent although
   * everything was accepted (hasUnsent). A selector reports neither, so the user of the channel has
   * to check.
   *
   * A read fills its buffer or leaves nothing behind. However, it reads from the socket at most
   * READS times, because a fast sender must not keep other connections waiting.
   *
   * The tasks of a handshake (signatures, certificate checks) run inline. They take a few
   * milliseconds, at a time when only connections are being set up.
   *
   * The end of the socket without a TLS close_notify also reads as an end. The user of the channel
   * decides whether an end may come now: ranks say farewell, under the same encryption.
   */
  private static final int RECORDS = 4;
  private static final int READS = 16;
  private static final int GOODBYE_RECORDS = 4;
  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  private final SocketChannel socket;
  private final SSLEngine engine;
  private final int packetBytes;
  private final int recordBytes;

  /** The bytes that have come, from position to limit. */
  private final ByteBuffer netIn;

  /** The bytes to be sent, up to the position. */
  private final ByteBuffer netOut;

  /** The decrypted bytes, from position to limit. */
  private final ByteBuffer plain;

  private boolean begun;
  private boolean secured;
  private boolean starved = true;
  private boolean ended;

  /**
   * Creates a channel that is ready for the handshake.
   *
   * @param socket the socket, connected and non-blocking
   * @param engine a new engine, configured for its side
   */
  public TlsChannel(SocketChannel socket, SSLEngine engine) {
    this.socket = socket;
    this.engine = engine;
    packetBytes = engine.getSession().getPacketBufferSize();
    recordBytes = engine.getSession().getApplicationBufferSize();
    netIn = ByteBuffer.allocate(RECORDS * packetBytes).limit(0);
    netOut = ByteBuffer.allocate(RECORDS * packetBytes);
    plain = ByteBuffer.allocate(recordBytes).limit(0);
  }

  /**
   * Continues the handshake as far as possible without waiting.
   *
   * @return whether the handshake is over. With TLS 1.3 this is so for the connecting side before
   *     the other side has looked at its certificate
   * @throws IOException if the two sides cannot agree, one does not trust the other, or the socket
   *     ends
   */
  public boolean handshake() throws IOException {
    if (!begun) {
      begun = true;
      engine.beginHandshake();
    }
    while (!secured) {
      switch (engine.getHandshakeStatus()) {
        case NEED_TASK -> runTasks();
        case NEED_WRAP -> {
          if (!hasRoom()) {
            return false;
          }
          wrap(NOTHING);
        }
        case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
          // The peer waits for what this side has sent so far.
          if (!flush() || !unwrapHandshake()) {
            return false;
          }
        }
        case NOT_HANDSHAKING, FINISHED -> secured = true;
      }
    }
    return flush();
  }

  private boolean unwrapHandshake() throws IOException {
    unwrap(plain.clear());
    plain.flip();
    int count = starved ? fill() : 1;
    if (ended || count < 0) {
      throw new EOFException("it closed the connection during the TLS handshake");
    }
    return count > 0;
  }

  /** Returns whether there is something to read that the socket does not report. */
  public boolean hasBuffered() {
    return plain.hasRemaining() || (!starved && netIn.hasRemaining());
  }

  /** Returns whether there is something to be sent. */
  public boolean hasUnsent() {
    return netOut.position() > 0;
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    int total = takePlain(to);
    int reads = 0;
    while (to.hasRemaining() && !ended) {
      if (to.remaining() >= recordBytes) {
        total += unwrap(to);
      } else {
        unwrap(plain.clear());
        plain.flip();
        total += takePlain(to);
      }
      if (starved) {
        int count = ++reads > READS ? 0 : fill();
        ended |= count < 0;
        if (count <= 0) {
          break;
        }
      }
    }
    return total == 0 && ended ? -1 : total;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    int before = from.remaining();
    while (from.hasRemaining() && hasRoom()) {
      SSLEngineResult result = wrap(from);
      if (result.bytesConsumed() == 0 && result.bytesProduced() == 0) {
        throw new SSLException("TLS cannot send now: " + result.getHandshakeStatus());
      }
    }
    flush();
    return before - from.remaining();
  }

  /**
   * Sends waiting bytes, as far as the socket accepts them.
   *
   * @return whether nothing is left
   */
  public boolean flush() throws IOException {
    if (netOut.position() > 0) {
      netOut.flip();
      try {
        socket.write(netOut);
      } finally {
        netOut.compact();
      }
    }
    return netOut.position() == 0;
  }

  @Override
  public boolean isOpen() {
    return socket.isOpen();
  }

  /**
   * Sends a close_notify, or the reason why this side gave up, as far as the socket accepts it; the
   * socket stays open.
   */
  @Override
  public void close() throws IOException {
    engine.closeOutbound();
    for (int i = 0; i < GOODBYE_RECORDS && !engine.isOutboundDone() && hasRoom(); i++) {
      if (engine.wrap(NOTHING, netOut).bytesProduced() == 0) {
        break;
      }
    }
    flush();
  }

  private boolean hasRoom() throws IOException {
    if (netOut.remaining() < packetBytes) {
      flush();
    }
    return netOut.remaining() >= packetBytes;
  }

  /** Answers requests of TLS itself, such as for new keys. */
  private void answer() throws IOException {
    HandshakeStatus status = engine.getHandshakeStatus();
    if (status == HandshakeStatus.NEED_TASK) {
      runTasks();
    } else if (status == HandshakeStatus.NEED_WRAP && hasRoom()) {
      wrap(NOTHING);
      flush();
    }
  }

  private void runTasks() {
    for (Runnable task = engine.getDelegatedTask();
        task != null;
        task = engine.getDelegatedTask()) {
      task.run();
    }
  }

  private SSLEngineResult wrap(ByteBuffer from) throws SSLException {
    SSLEngineResult result = engine.wrap(from, netOut);
    if (result.getStatus() != Status.OK) {
      throw new SSLException("TLS cannot send anything more: " + result.getStatus());
    }
    return result;
  }

  /** Decrypts at most one record, which must fit; returns the number of bytes in it. */
  private int unwrap(ByteBuffer to) throws IOException {
    SSLEngineResult result = engine.unwrap(netIn, to);
    starved = result.getStatus() == Status.BUFFER_UNDERFLOW;
    ended |= result.getStatus() == Status.CLOSED;
    if (result.getStatus() == Status.BUFFER_OVERFLOW) {
      throw new SSLException("a TLS record is longer than " + recordBytes + " bytes");
    }
    if (secured && result.getHandshakeStatus() != HandshakeStatus.NOT_HANDSHAKING) {
      answer();
    }
    return result.bytesProduced();
  }

  private int fill() throws IOException {
    netIn.compact();
    try {
      return socket.read(netIn);
    } finally {
      netIn.flip();
    }
  }

  private int takePlain(ByteBuffer to) {
    int count = Math.min(plain.remaining(), to.remaining());
    if (count > 0) {
      to.put(to.position(), plain, plain.position(), count);
      to.position(to.position() + count);
      plain.position(plain.position() + count);
    }
    return count;
  }
}
