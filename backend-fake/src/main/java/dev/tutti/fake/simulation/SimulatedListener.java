package dev.tutti.fake.simulation;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.AlreadyBoundException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NotYetBoundException;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Accepts connections on a simulated host. */
final class SimulatedListener extends ServerSocketChannel implements SimulatedChannel {
  private static final int BACKLOG = 50;

  private final SelectorProvider channels;
  private final SocketHost host;
  private final Watchers watchers = new Watchers(this, this::readyOps);
  private final Queue<SimulatedSocket> pending = new ArrayDeque<>();
  private @Nullable Binding binding;
  private int backlog;

  /** The JDK's listeners have it on Linux. */
  private boolean reuse = true;

  SimulatedListener(SelectorProvider channels, SocketHost host) {
    super(channels);
    this.channels = channels;
    this.host = host;
  }

  /** Returns whether connections to an address come here. */
  boolean covers(InetSocketAddress address) {
    Binding own = binding;
    return own != null && own.port() == address.getPort() && own.covers(address.getAddress());
  }

  /** Takes a connection for the program to accept; returns false if too many wait. */
  boolean offer(ConnectionEnd client, InetSocketAddress at) {
    Binding own = binding;
    if (own == null || pending.size() >= backlog) {
      return false;
    }
    SimulatedSocket server = new SimulatedSocket(channels, host);
    server.accepted((SimulatedSocket) client, host.ports().share(own), at);
    pending.add(server);
    watchers.changed();
    return true;
  }

  @Override
  public int readyOps() {
    return pending.isEmpty() ? 0 : SelectionKey.OP_ACCEPT;
  }

  @Override
  public Watchers watchers() {
    return watchers;
  }

  @Override
  public ServerSocketChannel bind(@Nullable SocketAddress address, int newBacklog)
      throws IOException {
    requireOpen();
    if (binding != null) {
      throw new AlreadyBoundException();
    }
    Binding own = host.ports().bind((InetSocketAddress) address, reuse);
    own.listen();
    binding = own;
    backlog = newBacklog > 0 ? newBacklog : BACKLOG;
    host.add(this);
    return this;
  }

  @Override
  public @Nullable SocketChannel accept() throws IOException {
    requireOpen();
    if (binding == null) {
      throw new NotYetBoundException();
    }
    if (isBlocking()) {
      watchers.await(SelectionKey.OP_ACCEPT);
    }
    return pending.poll();
  }

  @Override
  protected void implCloseSelectableChannel() throws IOException {
    host.remove(this);
    Binding own = binding;
    if (own != null) {
      host.ports().release(own, false);
    }
    for (SimulatedSocket each : pending) {
      each.abort();
    }
    pending.clear();
    watchers.changed();
  }

  @Override
  public void processEnded() throws IOException {
    close();
  }

  @Override
  protected void implConfigureBlocking(boolean block) {
    // isBlocking() is asked.
  }

  private void requireOpen() throws ClosedChannelException {
    if (!isOpen()) {
      throw new ClosedChannelException();
    }
  }

  @Override
  public @Nullable SocketAddress getLocalAddress() throws IOException {
    requireOpen();
    Binding own = binding;
    return own == null ? null : own.address();
  }

  @Override
  public <T> ServerSocketChannel setOption(SocketOption<T> option, T value) throws IOException {
    requireOpen();
    if (option.equals(StandardSocketOptions.SO_REUSEADDR)) {
      reuse = (Boolean) value;
    }
    return this;
  }

  @Override
  @SuppressWarnings("unchecked") // the only option is a Boolean
  public <T> T getOption(SocketOption<T> option) throws IOException {
    requireOpen();
    return (T) Boolean.valueOf(reuse);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return Set.of(StandardSocketOptions.SO_REUSEADDR);
  }

  @Override
  public ServerSocket socket() {
    throw new UnsupportedOperationException("only channels are simulated");
  }
}
