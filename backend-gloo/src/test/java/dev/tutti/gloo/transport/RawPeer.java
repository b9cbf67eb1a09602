package dev.tutti.gloo.transport;

import dev.tutti.Store;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.RankBlob;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Rank 1 of a group of two, as a plain blocking socket; the test writes its bytes by hand. */
final class RawPeer implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);

  /** A message as received, its payload in hexadecimal digits. */
  record Message(long opcode, long slot, long length, String payload) {}

  private final SelectorProvider channels;
  private final ServerSocketChannel server;
  private final boolean tutti;
  private RawSocket socket;

  RawPeer(boolean tutti) throws IOException {
    this(tutti, SelectorProvider.provider(), InetAddress.ofLiteral("127.0.0.1"));
  }

  /**
   * Listens, by channels of some kind, at an address; the rank with the greater one connects to the
   * other.
   */
  RawPeer(boolean tutti, SelectorProvider channels, InetAddress address) throws IOException {
    this.tutti = tutti;
    this.channels = channels;
    server = channels.openServerSocketChannel();
    ServerSocketChannel _ = server.bind(new InetSocketAddress(address, 0), 16);
  }

  private PeerAddress address() throws IOException {
    return new PeerAddress((InetSocketAddress) server.getLocalAddress(), -1, tutti, 0, 0);
  }

  /** Publishes this rank's address. */
  void publish(Store store, long... identifiers) throws IOException {
    store.set(
        "0/1", new RankBlob(TransportRendezvous.hostname(), address(), identifiers).toBytes());
  }

  /** Returns what rank 0 published. */
  static RankBlob blobOfRank0(Store store, int identifiers) {
    return RankBlob.read(store.get("0/0", TIMEOUT), identifiers);
  }

  /** Publishes and then connects or accepts, depending on the addresses. */
  void join(Store store) throws IOException {
    publish(store, 10, 11);
    RankBlob other = blobOfRank0(store, 2);
    // Rank 0 assigned identifier 1 to this rank, and this rank assigned identifier 10 to rank 0.
    join(other.address(), other.identifiers()[1], 10);
  }

  void join(PeerAddress other, long presented, long expected) throws IOException {
    if (address().compareRole(other, expected, presented) > 0) {
      socket = RawSocket.connect(channels, other.socket()).send(words(presented));
    } else {
      socket = new RawSocket(server.accept());
      ByteBuffer greeting = ByteBuffer.wrap(socket.read(8)).order(ByteOrder.LITTLE_ENDIAN);
      if (greeting.getLong() != expected) {
        throw new AssertionError("greeting " + greeting.getLong(0) + ", expected " + expected);
      }
    }
  }

  static byte[] words(long... values) {
    ByteBuffer out = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long value : values) {
      out.putLong(value);
    }
    return out.array();
  }

  void send(byte... bytes) throws IOException {
    RawSocket _ = socket.send(bytes);
  }

  void notifySend(long slot, long length) throws IOException {
    send(words(48, 2, slot, 0, length, 0));
  }

  void notifyReceive(long slot, long length) throws IOException {
    send(words(48, 3, slot, 0, length, 0));
  }

  void data(long slot, byte... payload) throws IOException {
    send(words(48 + payload.length, 1, slot, 0, payload.length, 0));
    send(payload);
  }

  /** Reads one message and checks the fields that never vary. */
  Message receive() throws IOException {
    ByteBuffer header = ByteBuffer.wrap(socket.read(48)).order(ByteOrder.LITTLE_ENDIAN);
    long nbytes = header.getLong();
    long opcode = header.getLong();
    long slot = header.getLong();
    long offset = header.getLong();
    long length = header.getLong();
    long remoteOffset = header.getLong();
    int payload = Header.hasPayload(opcode) ? Math.toIntExact(length) : 0;
    if (nbytes != 48 + payload || offset != 0 || remoteOffset != 0) {
      throw new AssertionError("header " + nbytes + " " + offset + " " + remoteOffset);
    }
    return new Message(opcode, slot, length, HexFormat.of().formatHex(socket.read(payload)));
  }

  List<Message> receive(int count) throws IOException {
    List<Message> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      messages.add(receive());
    }
    return messages;
  }

  /** Waits until the other side closes. */
  void awaitEnd() throws IOException {
    try {
      while (true) {
        receive();
      }
    } catch (EOFException e) {
      // as it should
    }
  }

  /** Closes the connection without a farewell. */
  void die() throws IOException {
    socket.close();
  }

  @Override
  public void close() throws IOException {
    server.close();
    if (socket != null) {
      socket.close();
    }
  }
}
