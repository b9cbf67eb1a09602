package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Settings;
import dev.tutti.store.JobToken;
import dev.tutti.testkit.TestAuthority;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Lets many strangers start a handshake with a store server at the same time. */
@Timeout(300)
class TlsStrangersTest {
  private static final int STRANGERS = 40;

  /** Holds up the thread that serves all clients of a server when that logs something. */
  private static final class ServerThread extends Handler implements AutoCloseable {
    final Logger logger = Logger.getLogger(TcpStoreServer.class.getName());
    final BlockingQueue<Integer> answered = new LinkedBlockingQueue<>();
    final CountDownLatch resume = new CountDownLatch(1);
    final List<Socket> strangers = new ArrayList<>();
    private final String name;

    ServerThread(int port) {
      name = "port " + port + " ";
    }

    @Override
    public void publish(LogRecord record) {
      if (!record.getMessage().contains(name)) {
        return;
      }
      try {
        int count = 0;
        for (Socket stranger : strangers) {
          count += stranger.getInputStream().available() > 0 ? 1 : 0;
        }
        answered.add(count);
        resume.await();
      } catch (IOException | InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
      logger.removeHandler(this);
    }
  }

  private static SSLContext context(Path folder) throws Exception {
    TestAuthority authority = new TestAuthority(folder, "one");
    TestAuthority.Issued own = authority.issue("member");
    return Objects.requireNonNull(
        TlsSettings.load(
            Settings.ofEnvironment(own.settings("TUTTI_TLS", authority.certificate()))));
  }

  /** Returns what a client sends first. */
  private static byte[] hello(SSLContext context) throws Exception {
    SSLEngine engine = TlsSettings.engine(context, true);
    ByteBuffer hello = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
    engine.beginHandshake();
    engine.wrap(ByteBuffer.allocate(0), hello);
    return Arrays.copyOf(hello.array(), hello.position());
  }

  @Test
  void aClientIsServedBeforeStrangersThatAskedForHandshakesEarlier(@TempDir Path folder)
      throws Exception {
    SSLContext context = context(folder);
    byte[] hello = hello(context);
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (TcpStoreServer server = new TcpStoreServer(loopback, 0, JobToken.NONE, context);
        ServerThread thread = new ServerThread(server.port())) {
      for (int i = 0; i < STRANGERS; i++) {
        thread.strangers.add(new Socket(loopback, server.port()));
      }
      // Once these have been served, the strangers have been accepted.
      SSLSocket first = secured(context, loopback, server.port());
      SSLSocket second = secured(context, loopback, server.port());
      thread.logger.addHandler(thread);
      // The server says that this is no request, on its only thread, which waits meanwhile.
      first.getOutputStream().write(99);
      assertThat(thread.answered.take()).isZero();
      for (Socket stranger : thread.strangers) {
        stranger.getOutputStream().write(hello);
      }
      second.getOutputStream().write(99);
      thread.resume.countDown();
      assertThat(thread.answered.take()).isLessThanOrEqualTo(2);
      for (Socket stranger : thread.strangers) {
        assertThat(stranger.getInputStream().read()).as("a handshake").isEqualTo(22);
        stranger.close();
      }
      first.close();
      second.close();
    }
  }

  private static SSLSocket secured(SSLContext context, InetAddress host, int port)
      throws IOException {
    SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(host, port);
    // The greeting of the protocol, and a check of no keys: its answer ends the handshake for both.
    socket.getOutputStream().write(HexFormat.of().parseHex("00cef7853c05" + "00".repeat(8)));
    assertThat(socket.getInputStream().read()).isZero();
    return socket;
  }
}
