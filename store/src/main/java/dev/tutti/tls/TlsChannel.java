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

/** Encrypts what goes through a socket, by TLS, and never blocks. One thread at a time uses it. */
public final class TlsChannel implements ByteChannel {
  /*
   * Encrypted bytes that came wait in netIn, those that are to leave in netOut, decrypted ones that did
   * not fit where they were wanted in plain. So there may be something to read though the socket has
   * nothing (hasBuffered), and something to be sent though all was taken (hasUnsent); a selector tells
   * of neither, who uses this has to ask.
   *
   * A read fills its buffer or leaves nothing behind. But it reads from the socket no more than READS
   * times, as a fast sender must not keep other connections waiting.
   *
   * The tasks of a handshake (signatures, the check of certificates) run inline. They take a few
   * milliseconds, while nothing is under way but the set-up of connections.
   *
   * The end of the socket without TLS's own good-bye reads as an end too. Whoever uses this knows
   * whether an end may come now: ranks say farewell, under the same encryption.
   */
  private static final int RECORDS = 4;
  private static final int READS = 16;
  private static final int GOODBYE_RECORDS = 4;
  private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

  private final SocketChannel socket;
  private final SSLEngine engine;
  private final int packetBytes;
  private final int recordBytes;

  /** From position to limit it has what came. */
  private final ByteBuffer netIn;

  /** Up to its position it has what is to leave. */
  private final ByteBuffer netOut;

  /** From position to limit it has what was decrypted. */
  private final ByteBuffer plain;

  private boolean begun;
  private boolean secured;
  private boolean starved = true;
  private boolean ended;

  /**
   * Prepares to encrypt.
   *
   * @param socket connected, does not block
   * @param engine a new one, which knows its side
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
   * Continues with the handshake as far as is possible without waiting.
   *
   * @return whether it is over. With TLS 1.3 it is so for the side that connects before the other
   *     one has looked at its certificate
   * @throws IOException if the two cannot agree, one does not trust the other, or the socket ends
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
          // The peer waits for what this side said so far.
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
      throw new EOFException("it ended the connection during the handshake");
    }
    return count > 0;
  }

  /** Tells whether there is something to read that the socket does not know of. */
  public boolean hasBuffered() {
    return plain.hasRemaining() || (!starved && netIn.hasRemaining());
  }

  /** Tells whether there is something to be sent. */
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
        throw new SSLException("TLS takes nothing to send now: " + result.getHandshakeStatus());
      }
    }
    flush();
    return before - from.remaining();
  }

  /**
   * Sends what waits to be sent, as far as the socket takes it.
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

  /** Says good-bye, or why this side gave up, as far as the socket takes it, which stays open. */
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

  /** Answers what TLS itself asked, such as for new keys. */
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
      throw new SSLException("TLS takes nothing more to send: " + result.getStatus());
    }
    return result;
  }

  /** Decrypts at most one record, which fits; returns how many bytes it had. */
  private int unwrap(ByteBuffer to) throws IOException {
    SSLEngineResult result = engine.unwrap(netIn, to);
    starved = result.getStatus() == Status.BUFFER_UNDERFLOW;
    ended |= result.getStatus() == Status.CLOSED;
    if (result.getStatus() == Status.BUFFER_OVERFLOW) {
      throw new SSLException("a record of TLS is longer than " + recordBytes + " bytes");
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
