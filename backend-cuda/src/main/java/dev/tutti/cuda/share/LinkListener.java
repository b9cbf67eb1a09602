package dev.tutti.cuda.share;

import java.io.IOException;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** The socket at which a rank accepts links, and the selector that reports what its links do. */
final class LinkListener {
  private static final int BACKLOG = 64;

  private final @Nullable Path path;
  private final ServerSocketChannel server;
  private final LinkAddress address;
  private final Selector selector;

  /** Creates the socket at a path, or at an address of this host. */
  LinkListener(SocketAddress own, boolean encrypted, long token) throws IOException {
    path = own instanceof UnixDomainSocketAddress local ? local.getPath() : null;
    server =
        path == null
            ? ServerSocketChannel.open()
            : ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      server.bind(own, BACKLOG);
      server.configureBlocking(false);
      address = new LinkAddress(server.getLocalAddress(), encrypted, token);
      selector = Selector.open();
      server.register(selector, SelectionKey.OP_ACCEPT);
    } catch (IOException | RuntimeException e) {
      server.close();
      removeSocket();
      throw e;
    }
  }

  LinkAddress address() {
    return address;
  }

  boolean isOverNetwork() {
    return path == null;
  }

  Selector selector() {
    return selector;
  }

  /** Accepts a connection; returns null if there is none. */
  @Nullable SocketChannel accept() throws IOException {
    return server.accept();
  }

  /** Closes the socket and all connections of the selector. */
  void close() throws IOException {
    for (SelectionKey key : selector.keys()) {
      key.channel().close();
    }
    selector.close();
    server.close();
    removeSocket();
  }

  private void removeSocket() throws IOException {
    if (path != null) {
      Files.deleteIfExists(path);
    }
  }
}
