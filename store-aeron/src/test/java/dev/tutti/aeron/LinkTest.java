package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.store.JobToken;
import io.aeron.Aeron;
import io.aeron.Subscription;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what calls get when the thread that hears the server ends. */
@Timeout(60)
class LinkTest {
  @TempDir private Path directory;

  /** Has no memory for what it reads. */
  private static final class Full extends Socket {
    @Override
    public InputStream getInputStream() {
      return new InputStream() {
        @Override
        public int read() {
          throw new OutOfMemoryError("played");
        }

        @Override
        public int read(byte[] bytes, int at, int length) {
          throw new OutOfMemoryError("played");
        }
      };
    }

    @Override
    public OutputStream getOutputStream() {
      return OutputStream.nullOutputStream();
    }
  }

  @Test
  void callsFailWhereTheServerIsNotHeardAnyMore() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver =
        EmbeddedDriver.start(
            AeronStoreOptions.of("localhost", 0).withDirectory(directory).withToken(JobToken.NONE),
            timing,
            2);
    Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
    Link link =
        new Link(
            "played",
            new Control(new Full(), timing),
            aeron,
            driver,
            null,
            new Handshake.Session(10, 11, 1, 0, "", "", new byte[0]),
            aeron.addSubscription(Channels.IPC, 11),
            aeron.addExclusivePublication(Channels.IPC, 10),
            false);
    link.start();
    Call call = link.newCall();
    long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    assertThatThrownBy(() -> link.await(call, deadline, true))
        .isInstanceOf(StoreConnectionException.class)
        .hasMessageContaining("cannot be read: java.lang.OutOfMemoryError: played");
    assertThat(link.isUsable()).isFalse();
    link.release();
  }

  @Test
  void aCallThatCannotBeTakenBackNowIsTakenBackLater() throws Exception {
    Timing timing = Timing.of(Duration.ofSeconds(5));
    EmbeddedDriver driver =
        EmbeddedDriver.start(
            AeronStoreOptions.of("localhost", 0).withDirectory(directory).withToken(JobToken.NONE),
            timing,
            2);
    Aeron aeron = EmbeddedDriver.connect(driver.path(), timing);
    Subscription requests = aeron.addSubscription(Channels.IPC, 10);
    long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    try (ServerSocket listener = new ServerSocket(0);
        Control control =
            Control.connect(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), listener.getLocalPort()),
                timing,
                deadline)) {
      Link link =
          new Link(
              "played",
              control,
              aeron,
              driver,
              null,
              new Handshake.Session(10, 11, 1, 0, "", "", new byte[0]),
              aeron.addSubscription(Channels.IPC, 11),
              aeron.addExclusivePublication(Channels.IPC, 10),
              false);
      link.start();
      byte[] large = new byte[1 << 20];
      Thread sender =
          Thread.ofPlatform()
              .start(
                  () ->
                      link.send(
                          Protocol.SET, link.newCall(), deadline, body -> body.putBytes(large)));
      while (sender.getState() != Thread.State.TIMED_WAITING) {
        Thread.onSpinWait();
      }
      Call late = link.newCall();
      assertThatThrownBy(() -> link.send(Protocol.CANCEL, late, System.nanoTime(), body -> {}))
          .isInstanceOf(StoreTimeoutException.class);
      List<Integer> codes = new ArrayList<>();
      List<Long> numbers = new ArrayList<>();
      FrameReader reader =
          new FrameReader(
              1,
              (code, number, body) -> {
                codes.add(code);
                numbers.add(number);
              });
      while (codes.size() < 2 && deadline - System.nanoTime() > 0) {
        requests.poll(reader, 16);
      }
      sender.join();
      assertThat(codes).containsExactly(Protocol.SET, Protocol.CANCEL);
      assertThat(numbers).last().isEqualTo(late.number);
      link.release();
    }
  }
}
