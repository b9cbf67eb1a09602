package dev.tutti.store.tcp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import dev.tutti.store.table.KeyText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;

/** A simulated store server, mostly one of PyTorch's, that sends exactly what a test sets. */
final class ScriptedServer implements AutoCloseable {
  private final Time time;
  private final ServerSocketChannel listener;

  /** Creates a server with channels of some kind. */
  ScriptedServer(SelectorProvider channels, Time time) throws IOException {
    this.time = time;
    InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    this.listener = channels.openServerSocketChannel().bind(any);
  }

  int port() throws IOException {
    return ((InetSocketAddress) listener.getLocalAddress()).getPort();
  }

  /** Runs a call of the client concurrently with the script. */
  <T> Future<T> client(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread _ = time.start("client", task);
    return task;
  }

  static <T> T ended(Future<T> call) throws Exception {
    return call.get();
  }

  /** Accepts a connection and reads the greeting. */
  Peer accept() throws IOException {
    return new Peer(new RawClient(listener.accept())).expect("00 ce f7 85 3c");
  }

  /** Closes each connection at once, until this server is closed. */
  Void closeAll() throws IOException {
    while (true) {
      listener.accept().close();
    }
  }

  /** Accepts a main connection, and answers the capability query as PyTorch does. */
  Peer acceptMain() throws IOException {
    return acceptQuestion().sendNonce();
  }

  /** Accepts a main connection, and answers the capability query as Tutti's server does. */
  Peer acceptTuttiMain() throws IOException {
    return acceptQuestion().sendValue((Wire.CAPABILITY_VERSION + " scripted").getBytes(UTF_8));
  }

  private Peer acceptQuestion() throws IOException {
    Peer peer = accept();
    peer.expect("02 10 00 00 00 00 00 00 00");
    assertThat(new String(peer.read(16), KeyText.BYTES)).isEqualTo("tutti/capability");
    peer.nonce = peer.expect("10 00 00 00 00 00 00 00").read(16);
    return peer.expect("10 00 00 00 00 00 00 00").expect(peer.nonce);
  }

  /** Opens a client and its main connection. */
  Opened open(TcpStoreOptions options) throws Exception {
    Future<TcpStore> store = client(() -> new TcpStore(options));
    Peer main = acceptMain();
    return new Opened(ended(store), main);
  }

  /** Opens a client that takes this for a Tutti server, and its main connection. */
  Opened openTutti(TcpStoreOptions options) throws Exception {
    Future<TcpStore> store = client(() -> new TcpStore(options));
    Peer main = acceptTuttiMain();
    return new Opened(ended(store), main);
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }

  /** A client with the other end of its main connection. */
  record Opened(TcpStore store, Peer main) implements AutoCloseable {
    @Override
    public void close() throws IOException {
      store.close();
      main.close();
    }
  }

  /** The server's end of a connection. */
  static final class Peer implements AutoCloseable {
    private final RawClient end;
    private byte[] nonce = {};

    Peer(RawClient end) {
      this.end = end;
    }

    byte[] read(int length) throws IOException {
      return end.read(length);
    }

    Peer expect(byte[] expected) throws IOException {
      RawClient _ = end.expect(expected);
      return this;
    }

    Peer expect(String hex) throws IOException {
      return expect(RawClient.hex(hex));
    }

    /** Reads the request for the value of a key that exists. */
    Peer expectRead(String key) throws IOException {
      return expect(RawClient.request(Wire.COMPARE_SET, key, nonce, nonce));
    }

    /** Reads a compare-and-set with the expected value; returns the desired value. */
    String expectSwap(String key, String expected) throws IOException {
      expect(RawClient.request(Wire.COMPARE_SET, key, expected));
      long length = ByteBuffer.wrap(read(Long.BYTES)).order(ByteOrder.LITTLE_ENDIAN).getLong();
      return new String(read(Math.toIntExact(length)), UTF_8);
    }

    /** Answers that a key exists, and reads the request for its value. */
    Peer expectLookAtPresent(String key) throws IOException {
      return expect(RawClient.request(Wire.CHECK, 1L, key)).send("00").expectRead(key);
    }

    /** Answers that a key is absent. */
    Peer expectLookAtAbsent(String key) throws IOException {
      return expect(RawClient.request(Wire.CHECK, 1L, key)).send("01");
    }

    Peer send(byte[] bytes) throws IOException {
      RawClient _ = end.send(bytes);
      return this;
    }

    Peer send(String hex) throws IOException {
      return send(RawClient.hex(hex));
    }

    /** Sends a length and then the bytes. */
    Peer sendValue(byte[] value) throws IOException {
      byte[] request = RawClient.request(0, value);
      return send(Arrays.copyOfRange(request, 1, request.length));
    }

    /** Answers that a key is absent, by returning the nonce. */
    Peer sendNonce() throws IOException {
      return sendValue(nonce);
    }

    void expectEnd() throws IOException {
      assertThat(end.read(1)).isEmpty();
    }

    @Override
    public void close() throws IOException {
      end.close();
    }
  }
}
