package dev.tutti.store.tcp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.table.KeyText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** A simulated store server, mostly one of PyTorch's, that sends exactly what a test wants. */
final class ScriptedServer implements AutoCloseable {
  private static final int LIMIT_MILLIS = 60_000;

  private final ServerSocket listener;
  private final ExecutorService threads = Executors.newCachedThreadPool();

  ScriptedServer() throws IOException {
    listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    listener.setSoTimeout(LIMIT_MILLIS);
  }

  int port() {
    return listener.getLocalPort();
  }

  /** Runs a call of the client concurrently with the script. */
  <T> Future<T> client(Callable<T> call) {
    return threads.submit(call);
  }

  static <T> T ended(Future<T> call) throws Exception {
    return call.get(LIMIT_MILLIS, TimeUnit.MILLISECONDS);
  }

  /** Accepts a connection and reads the greeting. */
  Peer accept() throws IOException {
    Socket socket = listener.accept();
    socket.setTcpNoDelay(true);
    socket.setSoTimeout(LIMIT_MILLIS);
    return new Peer(socket).expect("00 ce f7 85 3c");
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
    threads.shutdownNow();
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
    private final Socket socket;
    private byte[] nonce = {};

    Peer(Socket socket) {
      this.socket = socket;
    }

    byte[] read(int length) throws IOException {
      return socket.getInputStream().readNBytes(length);
    }

    Peer expect(byte[] expected) throws IOException {
      assertThat(HexFormat.ofDelimiter(" ").formatHex(read(expected.length)))
          .isEqualTo(HexFormat.ofDelimiter(" ").formatHex(expected));
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
      socket.getOutputStream().write(bytes);
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
      assertThat(socket.getInputStream().read()).isEqualTo(-1);
    }

    /** Closes the connection, and waits until the client's system knows. */
    void closeAndWait() throws IOException {
      socket.setSoLinger(true, 60);
      socket.close();
    }

    @Override
    public void close() throws IOException {
      socket.close();
    }
  }
}
