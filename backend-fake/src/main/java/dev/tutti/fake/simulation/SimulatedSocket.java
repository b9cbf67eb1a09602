package dev.tutti.fake.simulation;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ConnectionPendingException;
import java.nio.channels.NoConnectionPendingException;
import java.nio.channels.NotYetConnectedException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.channels.UnresolvedAddressException;
import java.nio.channels.UnsupportedAddressTypeException;
import java.nio.channels.spi.SelectorProvider;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** One end of a simulated connection. */
final class SimulatedSocket extends SocketChannel implements SimulatedChannel, ConnectionEnd {
  private static final String RESET = "Connection reset";
  private static final Set<SocketOption<?>> OPTIONS =
      Set.of(
          StandardSocketOptions.SO_KEEPALIVE,
          StandardSocketOptions.SO_LINGER,
          StandardSocketOptions.SO_RCVBUF,
          StandardSocketOptions.SO_REUSEADDR,
          StandardSocketOptions.SO_SNDBUF,
          StandardSocketOptions.TCP_NODELAY);

  private final SocketHost host;
  private final NetworkTime network;
  private final Watchers watchers = new Watchers(this, this::readyOps);
  private final Map<SocketOption<?>, Object> options = new HashMap<>();
  private State state = State.NEW;
  private @Nullable Binding binding;
  private @Nullable InetSocketAddress local;
  private @Nullable InetSocketAddress remote;
  private @Nullable SimulatedSocket peer;
  private @Nullable SimulatedFlow in;
  private @Nullable SimulatedFlow out;

  /** Why connecting has failed. */
  private @Nullable IOException refusal;

  /** Why the connection has broken; empty while it has not. */
  private String broken = "";

  /** Whether a write was given the reason. */
  private boolean told;

  private boolean inputEnded;
  private boolean inputShut;
  private boolean outputShut;

  private enum State {
    NEW,
    CONNECTING,
    /** Connected at its end, which {@link #finishConnect()} has not seen yet. */
    ESTABLISHED,
    CONNECTED
  }

  SimulatedSocket(SelectorProvider provider, SocketHost host) {
    super(provider);
    this.host = host;
    this.network = host.network();
  }

  /** Makes both ends one connection. */
  static void join(SimulatedSocket client, SimulatedSocket server) {
    NetworkTime network = client.network;
    SimulatedLink there = client.host.linkTo(server.host);
    SimulatedLink back = server.host.linkTo(client.host);
    client.peer = server;
    server.peer = client;
    SimulatedFlow to = new SimulatedFlow(network, there, client, server);
    client.out = to;
    server.in = to;
    SimulatedFlow from =
        client.equals(server) ? to : new SimulatedFlow(network, back, server, client);
    server.out = from;
    client.in = from;
  }

  /** Makes this the server's end of a connection, which the client is notified of. */
  void accepted(SimulatedSocket client, Binding own, InetSocketAddress at) {
    state = State.CONNECTED;
    binding = own;
    local = at;
    remote = client.local;
    host.add(this);
    join(client, this);
    client.in().signal(client::established);
  }

  @Override
  public void loop() {
    join(this, this);
    established();
  }

  @Override
  public void established() {
    if (state == State.CONNECTING) {
      state = State.ESTABLISHED;
      watchers.changed();
    }
  }

  @Override
  public void refused(String why) {
    if (state == State.CONNECTING) {
      refusal = new ConnectException(why);
      watchers.changed();
    }
  }

  private SimulatedFlow in() {
    return Objects.requireNonNull(in);
  }

  private SimulatedFlow out() {
    return Objects.requireNonNull(out);
  }

  @Override
  public Watchers watchers() {
    return watchers;
  }

  @Override
  public void changed() {
    watchers.changed();
  }

  @Override
  public int readyOps() {
    if (refusal != null || state == State.ESTABLISHED) {
      return SelectionKey.OP_CONNECT;
    }
    if (state != State.CONNECTED) {
      return 0;
    }
    if (!broken.isEmpty()) {
      return SelectionKey.OP_READ | SelectionKey.OP_WRITE;
    }
    boolean reads = inputEnded || inputShut || in().available() > 0;
    boolean writes = outputShut || out().hasRoom();
    return (reads ? SelectionKey.OP_READ : 0) | (writes ? SelectionKey.OP_WRITE : 0);
  }

  @Override
  public SocketChannel bind(@Nullable SocketAddress address) throws IOException {
    requireOpen();
    InetSocketAddress wanted = (InetSocketAddress) address;
    boolean reuse = Boolean.TRUE.equals(options.get(StandardSocketOptions.SO_REUSEADDR));
    Binding own = host.ports().bind(wanted, reuse);
    binding = own;
    local = own.address();
    return this;
  }

  @Override
  public boolean connect(SocketAddress address) throws IOException {
    requireOpen();
    if (state == State.CONNECTED) {
      throw new AlreadyConnectedException();
    }
    if (state != State.NEW) {
      throw new ConnectionPendingException();
    }
    if (!(address instanceof InetSocketAddress target)) {
      throw new UnsupportedAddressTypeException();
    }
    if (target.isUnresolved()) {
      throw new UnresolvedAddressException();
    }
    Binding own = binding;
    if (own == null) {
      own = host.ports().bind(null, false);
      binding = own;
    }
    local = new InetSocketAddress(host.facing(target.getAddress()), own.port());
    remote = target;
    state = State.CONNECTING;
    host.add(this);
    host.connect(this, target);
    if (isBlocking()) {
      watchers.await(SelectionKey.OP_CONNECT);
      return finishConnect();
    }
    return false;
  }

  @Override
  public boolean finishConnect() throws IOException {
    requireOpen();
    IOException why = refusal;
    if (why != null) {
      close();
      throw why;
    }
    if (state == State.NEW) {
      throw new NoConnectionPendingException();
    }
    if (state == State.CONNECTING && isBlocking()) {
      watchers.await(SelectionKey.OP_CONNECT);
      return finishConnect();
    }
    if (state == State.ESTABLISHED) {
      state = State.CONNECTED;
    }
    return state == State.CONNECTED;
  }

  @Override
  public boolean isConnected() {
    return state == State.CONNECTED;
  }

  @Override
  public boolean isConnectionPending() {
    return state == State.CONNECTING || state == State.ESTABLISHED;
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    requireConnected();
    if (isBlocking()) {
      watchers.await(SelectionKey.OP_READ);
    }
    if (inputShut) {
      return -1;
    }
    host.takeMemory();
    SimulatedFlow flow = in();
    if (flow.available() > 0) {
      return flow.read(target);
    }
    if (inputEnded || told) {
      return -1;
    }
    if (!broken.isEmpty()) {
      throw new SocketException(broken);
    }
    return 0;
  }

  @Override
  public long read(ByteBuffer[] targets, int offset, int length) throws IOException {
    long total = 0;
    for (int i = offset; i < offset + length; i++) {
      int count =
          targets[i].hasRemaining() && (total == 0 || in().available() > 0) ? read(targets[i]) : 0;
      if (count < 0) {
        return total == 0 ? -1 : total;
      }
      total += count;
    }
    return total;
  }

  @Override
  public int write(ByteBuffer source) throws IOException {
    int start = source.position();
    do {
      requireConnected();
      if (isBlocking() && source.hasRemaining()) {
        watchers.await(SelectionKey.OP_WRITE);
      }
      if (outputShut) {
        throw new ClosedChannelException();
      }
      if (!broken.isEmpty()) {
        throw new IOException(failureOfWrite());
      }
      host.takeMemory();
      int _ = out().write(source);
    } while (isBlocking() && source.hasRemaining());
    return source.position() - start;
  }

  /** A write is notified of a reset once, and only if none was notified before. */
  private String failureOfWrite() {
    if (!broken.equals(RESET)) {
      return broken;
    }
    if (inputEnded || told) {
      return "Broken pipe";
    }
    told = true;
    return RESET + " by peer";
  }

  @Override
  public long write(ByteBuffer[] sources, int offset, int length) throws IOException {
    long total = 0;
    for (int i = offset; i < offset + length; i++) {
      total += write(sources[i]);
      if (sources[i].hasRemaining()) {
        break;
      }
    }
    return total;
  }

  @Override
  public SocketChannel shutdownInput() throws IOException {
    requireConnected();
    inputShut = true;
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() throws IOException {
    requireConnected();
    if (!outputShut) {
      outputShut = true;
      finish();
    }
    return this;
  }

  private void finish() {
    SimulatedSocket other = Objects.requireNonNull(peer);
    out().finish(other::inputEnds);
  }

  private void inputEnds() {
    inputEnded = true;
  }

  @Override
  public void refuse() {
    SimulatedSocket other = Objects.requireNonNull(peer);
    out().reset(other::reset);
  }

  /** Notes that the other end has reset the connection. */
  void reset() {
    if (broken.isEmpty() && isOpen()) {
      network.note(this + " is reset");
      breaks(RESET);
    }
  }

  @Override
  public void breaks(String why) {
    if (state == State.ESTABLISHED || state == State.CONNECTED) {
      broken = why;
      watchers.changed();
    } else {
      refused(why);
    }
  }

  @Override
  protected void implCloseSelectableChannel() {
    host.remove(this);
    boolean waits = false;
    if (out != null && broken.isEmpty()) {
      waits = !endConnection() && !inputEnded;
    }
    Binding own = binding;
    if (own != null) {
      host.ports().release(own, waits);
    }
    watchers.changed();
  }

  /** Ends the connection as the JDK and Linux do; returns whether by a reset. */
  private boolean endConnection() {
    boolean aborts = Integer.valueOf(0).equals(options.get(StandardSocketOptions.SO_LINGER));
    // The JDK cannot close a channel that a selector still holds, and ends its output meanwhile.
    boolean ends = !aborts && !outputShut && (isRegistered() && !isBlocking());
    boolean resets = aborts || in().available() > 0;
    if (ends || !(resets || outputShut)) {
      finish();
    }
    if (resets) {
      refuse();
    }
    return resets;
  }

  @Override
  public void processEnded() throws IOException {
    close();
  }

  /** Closes a connection that nobody has accepted. */
  void abort() throws IOException {
    options.put(StandardSocketOptions.SO_LINGER, 0);
    close();
  }

  /** Resets the other end. */
  void resetPeer() {
    SimulatedSocket other = peer;
    if (other != null) {
      other.reset();
    }
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

  private void requireConnected() throws ClosedChannelException {
    requireOpen();
    if (state != State.CONNECTED) {
      throw new NotYetConnectedException();
    }
  }

  @Override
  public @Nullable SocketAddress getRemoteAddress() throws IOException {
    requireOpen();
    return isConnected() ? remote : null;
  }

  @Override
  public @Nullable SocketAddress getLocalAddress() throws IOException {
    requireOpen();
    return local;
  }

  @Override
  public @Nullable InetSocketAddress localAddress() {
    return local;
  }

  @Override
  public <T> SocketChannel setOption(SocketOption<T> option, T value) throws IOException {
    requireOpen();
    options.put(option, value);
    return this;
  }

  @Override
  @SuppressWarnings("unchecked") // what setOption put there
  public <T> @Nullable T getOption(SocketOption<T> option) throws IOException {
    requireOpen();
    return (T) Objects.requireNonNull(options.get(option), () -> option + " is not set");
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return OPTIONS;
  }

  @Override
  public Socket socket() {
    throw new UnsupportedOperationException("only channels are simulated");
  }

  @Override
  public String toString() {
    return "connection of " + local + " with " + remote;
  }
}
