package dev.tutti.gloo.transport.connect;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Finds out which peers cannot be reached, by connecting to all of them at once. */
public final class Reach {
  private Reach() {}

  /**
   * Returns the peers that give no answer. One that refuses the connection, as when it no longer
   * listens, has answered.
   *
   * @param addresses the addresses of the peers
   * @param limit how long to try
   * @param channels opens the channels
   * @param time the clock and the waits
   */
  public static List<Integer> unreached(
      Map<Integer, InetSocketAddress> addresses,
      Duration limit,
      SelectorProvider channels,
      Time time)
      throws IOException {
    List<Integer> unreached = new ArrayList<>();
    long deadline = time.nanoTime() + limit.toNanos();
    try (Selector selector = channels.openSelector()) {
      try {
        for (Map.Entry<Integer, InetSocketAddress> peer : addresses.entrySet()) {
          begin(selector, peer.getKey(), peer.getValue(), unreached);
        }
        long left = deadline - time.nanoTime();
        while (left > 0 && selector.keys().stream().anyMatch(SelectionKey::isValid)) {
          time.select(selector, key -> end(key, unreached), left);
          left = deadline - time.nanoTime();
        }
        for (SelectionKey key : selector.keys()) {
          if (key.isValid()) {
            unreached.add((Integer) key.attachment());
          }
        }
      } finally {
        for (SelectionKey key : selector.keys()) {
          key.channel().close();
        }
      }
    }
    Collections.sort(unreached);
    return unreached;
  }

  private static void begin(
      Selector selector, int peer, InetSocketAddress address, List<Integer> unreached)
      throws IOException {
    SocketChannel channel = selector.provider().openSocketChannel();
    try {
      channel.configureBlocking(false);
      if (!channel.connect(address)) {
        channel.register(selector, SelectionKey.OP_CONNECT, peer);
        return;
      }
    } catch (ConnectException e) {
      // It refused.
    } catch (IOException e) {
      unreached.add(peer);
    }
    channel.close();
  }

  private static void end(SelectionKey key, List<Integer> unreached) {
    try (SocketChannel channel = (SocketChannel) key.channel()) {
      boolean _ = channel.finishConnect();
    } catch (ConnectException e) {
      // It refused.
    } catch (IOException e) {
      unreached.add((Integer) key.attachment());
    }
  }
}
