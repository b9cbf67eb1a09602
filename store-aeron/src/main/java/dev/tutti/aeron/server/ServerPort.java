package dev.tutti.aeron.server;

import dev.tutti.StoreConnectionException;
import dev.tutti.spi.HostPort;
import dev.tutti.spi.Time;
import dev.tutti.store.net.ReleasedPort;
import io.aeron.exceptions.AeronException;
import java.io.Closeable;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.DatagramChannel;
import java.nio.channels.ServerSocketChannel;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The port of a server: a TCP listener, and the UDP port of the same number, which is held until
 * the first client needs it. Without that, another socket of the host might get the UDP port of a
 * number that was chosen freely. All methods may be called from any thread.
 */
public final class ServerPort implements Closeable {
  private static final int BACKLOG = 4096;
  private static final int ATTEMPTS = 100;

  private final ServerSocket listener;
  private @Nullable DatagramChannel held;

  private ServerPort(ServerSocket listener) {
    this.listener = listener;
  }

  /**
   * Starts listening. A free port is one whose UDP port is free too; a port that is named may lack
   * it, which matters only to clients that use UDP.
   *
   * @param wanted the address, whose port is 0 for a free one
   * @throws StoreConnectionException if the port is in use or cannot be bound
   */
  public static ServerPort listen(InetSocketAddress wanted) {
    try {
      for (int attempt = 1; ; attempt++) {
        ServerPort port = bind(wanted);
        if (port.holdUdp() || wanted.getPort() != 0 || attempt == ATTEMPTS) {
          return port;
        }
        port.close();
      }
    } catch (BindException e) {
      throw new StoreConnectionException(
          (wanted.getPort() == 0
                  ? "no port of %2$s can be bound for a store server: %3$s; choose another address"
                  : "port %d for a store server is in use or cannot be bound: %3$s; choose another,"
                      + " or 0 for a free one")
              .formatted(wanted.getPort(), wanted.getAddress().getHostAddress(), e.getMessage()),
          e);
    } catch (IOException e) {
      throw new StoreConnectionException("cannot listen on " + HostPort.text(wanted) + ": " + e, e);
    }
  }

  private static ServerPort bind(InetSocketAddress wanted) throws IOException {
    ServerSocket socket = ServerSocketChannel.open().socket();
    try {
      socket.setReuseAddress(true);
      return ReleasedPort.bind(
          Time.SYSTEM,
          () -> {
            socket.bind(wanted, BACKLOG);
            return new ServerPort(socket);
          });
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  /** Returns whether the UDP port was free. */
  private synchronized boolean holdUdp() {
    try {
      DatagramChannel channel = DatagramChannel.open();
      try {
        held = channel.bind(listener.getLocalSocketAddress());
        return true;
      } catch (IOException e) {
        channel.close();
        return false;
      }
    } catch (IOException e) {
      return false;
    }
  }

  /** Returns the listener. */
  public ServerSocket listener() {
    return listener;
  }

  /** Returns the number. */
  public int number() {
    return listener.getLocalPort();
  }

  /**
   * Hands the UDP port over to the media driver.
   *
   * @param bind lets the driver bind the port, and is called again while the port is in use, for at
   *     most two seconds
   * @return what the last call of {@code bind} returned
   * @throws AeronException if the driver cannot bind the port
   */
  public <T> T handOverUdp(Supplier<T> bind) throws IOException {
    releaseUdp();
    return ReleasedPort.<T, RuntimeException>bind(Time.SYSTEM, bind::get);
  }

  private synchronized void releaseUdp() throws IOException {
    DatagramChannel channel = held;
    held = null;
    if (channel != null) {
      channel.close();
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
    releaseUdp();
  }
}
