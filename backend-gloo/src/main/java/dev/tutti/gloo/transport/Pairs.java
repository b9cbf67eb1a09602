package dev.tutti.gloo.transport;

import dev.tutti.Store;
import dev.tutti.gloo.transport.Connector.Route;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.ring.RingMemory;
import dev.tutti.gloo.transport.ring.RingReader;
import dev.tutti.gloo.transport.ring.RingWriter;
import dev.tutti.gloo.transport.ring.Sleep;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.tls.TlsChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The pairs of a transport, one for each other rank, which this class also connects. */
final class Pairs implements PairListener {
  /*
   * For any two ranks it is determined which one connects. If they do not connect at the start,
   * either may be the first to need the connection. A rank that has to wait for the other to
   * connect then knocks: it connects to the other's listener, identifies itself, and closes that
   * connection at once; the other rank then connects as it would have at the start. There are thus
   * never two connections one of which would have to be given up along with the bytes written to
   * it. A knock proves nothing and causes nothing but that connection, once.
   *
   * A peer's kernel accepts a knock even if the peer then leaves without having looked at it, and
   * the rank that knocked is notified of neither. It therefore knocks again until it is connected, and a
   * peer that has left refuses. The pauses between knocks grow, so that a peer that is merely
   * stopped does not collect many.
   */

  /** A knock that the peer may not have received. */
  private static final class Knock {
    Connector connector;
    long pause = FIRST_PAUSE_NANOS;
    long next;

    Knock(Connector connector, long now) {
      this.connector = connector;
      next = now + pause;
    }
  }

  /** How long to wait before knocking again, at first and at most. */
  private static final long FIRST_PAUSE_NANOS = 1_000_000_000L;

  private static final long LONGEST_PAUSE_NANOS = 30_000_000_000L;

  /** How often to check whether the store is still open. */
  private static final long LOOK_NANOS = 200_000_000L;

  private static final List<String> ANY_KEY = List.of("any");

  final PairContext context;
  final Protection protection;
  final TransportFailure failure;
  private final int rank;
  private final int size;
  private final Pair[] others;
  private final @Nullable InetSocketAddress[] addresses;
  private @Nullable Listener listener;
  private int connectedCount;
  private final @Nullable Route[] routes;
  private final BitSet awaited = new BitSet();
  private final Set<Connector> connectors = new LinkedHashSet<>();
  private final boolean[] wanted;
  private int wantedCount;
  private final List<Knock> knocks = new ArrayList<>();
  private boolean sparse;
  private final SequencedSet<PeerAuthentication> strangers = new LinkedHashSet<>();
  private final Set<PeerAuthentication> authentications = new LinkedHashSet<>();

  /** Connections that arrived after this rank had failed; they end when it leaves. */
  private final List<SocketChannel> late = new ArrayList<>();

  private final Set<EndingConnection> ending = new LinkedHashSet<>();

  /** Refused connections whose peers have not ended them yet. */
  private final Set<EndingConnection> refused = new LinkedHashSet<>();

  private boolean hasLeft;
  private @Nullable String refusal;

  Pairs(
      BackendContext group,
      Protection protection,
      TransportLog log,
      ProgressEngine progress,
      Requests requests,
      Views views) {
    this.protection = protection;
    rank = group.rank();
    size = group.size();
    context = new PairContext(group, log, progress, requests, views, this);
    failure = new TransportFailure(this, size, group.onFailure());
    others = new Pair[size - 1];
    addresses = new @Nullable InetSocketAddress[size];
    routes = new @Nullable Route[size];
    wanted = new boolean[size];
    for (int i = 0; i < others.length; i++) {
      others[i] = new Pair(context, i < rank ? i : i + 1);
    }
  }

  /** Returns the pair of another rank. */
  Pair get(int peer) {
    if (peer < 0 || peer >= size || peer == rank) {
      throw new IllegalArgumentException(
          context.log.self() + ": peer must be another rank of 0.." + (size - 1) + ", not " + peer);
    }
    return others[peer < rank ? peer : peer - 1];
  }

  /** Returns where the Tutti ranks listen, or listened until all had connected. */
  Map<Integer, InetSocketAddress> addresses() {
    Map<Integer, InetSocketAddress> known = new HashMap<>();
    for (int peer = 0; peer < size; peer++) {
      InetSocketAddress address = addresses[peer];
      if (address != null && context.isTutti(peer)) {
        known.put(peer, address);
      }
    }
    return known;
  }

  void listen(ServerSocketChannel server) throws IOException {
    listener = new Listener(this, context.progress.selector(), server);
  }

  /**
   * Allows a peer to connect.
   *
   * @param sequence the number that the peer then presents
   * @param now whether the peer connects by itself and is waited for
   */
  void expect(int peer, PeerAddress address, long sequence, boolean now) {
    context.setTutti(peer, address.tutti());
    addresses[peer] = address.socket();
    if (listener != null) {
      listener.expect(get(peer), sequence);
    }
    if (now) {
      awaited.set(peer);
    } else {
      later(peer, new Route(address.socket(), Listener.knock(rank), true));
    }
  }

  /**
   * Connects to a peer.
   *
   * @param sequence the number to present to it
   * @param now whether to begin now and wait for it, rather than when either rank needs the
   *     connection
   */
  void connect(int peer, PeerAddress address, long sequence, boolean now) throws IOException {
    context.setTutti(peer, address.tutti());
    addresses[peer] = address.socket();
    Route route = new Route(address.socket(), sequence, false);
    context.progress.lock.lock();
    try {
      if (now) {
        awaited.set(peer);
        follow(route, get(peer));
      } else {
        later(peer, route);
      }
    } finally {
      context.progress.lock.unlock();
    }
  }

  private void later(int peer, Route route) {
    routes[peer] = route;
    sparse = true;
  }

  @Override
  public void wants(int peer) {
    want(get(peer));
  }

  @Override
  public void fatal(Throwable cause, int blamed) {
    failure.fatal(cause, blamed);
  }

  @Override
  public void broke(int peer, PeerLostException breach, boolean wasBusy) {
    failure.peerBroke(peer, breach, wasBusy);
  }

  @Override
  public void closed(int peer, PeerLostException loss) {
    failure.peerClosed(peer, loss);
  }

  @Override
  public void farewell(int peer, long reason) {
    failure.farewell(peer, reason);
  }

  @Override
  public boolean deliver() {
    boolean any = context.requests.deliver();
    return failure.deliver() || any;
  }

  /** Starts connecting a pair, unless that has already begun. */
  void want(Pair pair) {
    assert context.progress.lock.isHeldByCurrentThread();
    Route route = routes[pair.rank];
    if (route == null || failure.cause() != null) {
      return;
    }
    routes[pair.rank] = null;
    wanted[pair.rank] = true;
    wantedCount++;
    try {
      Connector connector = follow(route, pair);
      if (route.knocks()) {
        knocks.add(new Knock(connector, context.time.nanoTime()));
      }
      context.progress.wakeSelector();
    } catch (IOException e) {
      pair.cannotConnect("cannot be reached (" + e.getMessage() + ")", e);
    }
  }

  private Connector follow(Route route, Pair pair) throws IOException {
    Connector connector = new Connector(this, pair, route);
    connectors.add(connector);
    connector.start();
    return connector;
  }

  /** Returns whether this rank has to knock, or to accept connections, again after a while. */
  boolean hasRetries() {
    return !knocks.isEmpty() || (listener != null && listener.isPaused());
  }

  /** Knocks and accepts again where it is time to; returns whether there was anything to do. */
  boolean retry() {
    boolean any = listener != null && listener.resume();
    return knockAgain() || any;
  }

  /**
   * Knocks again where it is time to.
   *
   * @return whether there was anything to do
   */
  private boolean knockAgain() {
    assert context.progress.lock.isHeldByCurrentThread();
    if (knocks.isEmpty()) {
      return false;
    }
    long now = context.time.nanoTime();
    boolean any = knocks.removeIf(this::isAnswered);
    for (int i = 0; i < knocks.size(); i++) {
      Knock knock = knocks.get(i);
      Connector last = knock.connector;
      if (now - knock.next >= 0 && !connectors.contains(last)) {
        any = true;
        knock.pause = Math.min(2 * knock.pause, LONGEST_PAUSE_NANOS);
        knock.next = now + knock.pause;
        try {
          knock.connector = follow(last.route, last.pair);
        } catch (IOException e) {
          last.pair.cannotConnect("cannot be reached (" + e.getMessage() + ")", e);
        }
      }
    }
    return any;
  }

  private boolean isAnswered(Knock knock) {
    Pair pair = knock.connector.pair;
    return pair.connection.isConnected() || pair.failure() != null || failure.cause() != null;
  }

  /** Called when a peer needs a connection that this rank has to make. */
  void knocked(long peer) {
    assert context.progress.lock.isHeldByCurrentThread();
    if (peer >= 0 && peer < size && peer != rank) {
      Pair pair = get((int) peer);
      Route route = routes[pair.rank];
      if (route != null && !route.knocks()) {
        want(pair);
      }
    }
  }

  /** Called when a connector has finished, successfully or not. */
  void ended(Connector connector) {
    connectors.remove(connector);
  }

  /** Accepts connections that nobody has looked at yet. */
  void accept() {
    if (listener != null) {
      listener.accept();
    }
  }

  /** Returns whether connections begin, other than those made at the start, or end. */
  boolean areInTransition() {
    return wantedCount > 0 || !ending.isEmpty();
  }

  /**
   * Called when a peer has identified itself with its greeting, or has been greeted.
   *
   * @param connects whether this rank initiated the connection
   */
  void greeted(Pair pair, SocketChannel channel, SelectionKey key, boolean connects) {
    assert context.progress.lock.isHeldByCurrentThread();
    if (protection.isOn() && failure.cause() == null) {
      PeerAuthentication authentication =
          new PeerAuthentication(this, pair, channel, key, connects);
      if (connects) {
        authentications.add(authentication);
      } else {
        // A client that connects and stays silent must not keep any rank out.
        if (strangers.size() >= Listener.MAX_STRANGERS) {
          strangers.removeFirst().giveUp();
        }
        strangers.add(authentication);
      }
      authentication.start();
    } else {
      connected(pair, channel, null, key);
    }
  }

  private void forget(PeerAuthentication authentication) {
    authentications.remove(authentication);
    strangers.remove(authentication);
  }

  /** Called when a peer has proved its identity. */
  void admitted(
      PeerAuthentication authentication,
      Pair pair,
      SocketChannel channel,
      @Nullable TlsChannel tls,
      SelectionKey key) {
    forget(authentication);
    connected(pair, channel, tls, key);
  }

  /**
   * Called when the other side of a connection failed to prove that it is the peer it claims to be.
   *
   * @param connected whether this rank initiated the connection, and so has the number of the peer
   */
  void refused(
      PeerAuthentication authentication,
      Pair pair,
      boolean connected,
      String why,
      @Nullable Throwable cause) {
    forget(authentication);
    if (refused.size() >= Listener.MAX_STRANGERS) {
      refused.iterator().next().close();
    }
    authentication.end(refused);
    if (connected) {
      pair.cannotConnect("cannot be trusted: " + why, cause);
    } else {
      context.log.warnOfStranger(
          "refused as rank " + pair.rank,
          authentication.host(),
          "closed a connection that claimed to be from rank " + pair.rank + ": " + why);
      refusal = "; a connection that claimed to be from rank " + pair.rank + " was refused: " + why;
    }
  }

  /** Returns which connection was refused, as text to be appended; empty if none was. */
  String refusal() {
    String last = refusal;
    return last == null ? "" : last;
  }

  private void connected(
      Pair pair, SocketChannel channel, @Nullable TlsChannel tls, SelectionKey key) {
    boolean halted = failure.cause() != null;
    if (halted && !hasLeft && !pair.connection.isConnected() && late.size() < size) {
      // Its end would make the peer consider this rank lost before the group has the cause.
      key.interestOps(0);
      late.add(channel);
      return;
    }
    if (halted || pair.failure() != null || pair.connection.isConnected()) {
      closeLate(channel);
      return;
    }
    pair.connection.attach(channel, tls, key);
    routes[pair.rank] = null;
    awaited.clear(pair.rank);
    if (wanted[pair.rank]) {
      wanted[pair.rank] = false;
      wantedCount--;
    }
    // A peer that knocks late must not consider this rank lost.
    if (++connectedCount == others.length && !sparse) {
      closeListener();
    }
  }

  /**
   * Waits until all peers to which this rank is connecting are connected. Refused connections may
   * be those of strangers and change nothing: a rank that is refused ends the set-up by itself.
   *
   * @param store the store of the group, which is closed if its set-up ends
   * @param deadline the deadline in terms of the clock of the context
   * @return the missing ranks, empty if there are none
   * @throws PeerLostException if a peer cannot be reached
   * @throws dev.tutti.StoreException if the store is closed or lost
   */
  List<Integer> awaitConnected(Store store, long deadline) throws Exception {
    drive(this::isSettled, store, deadline);
    ProgressEngine progress = context.progress;
    progress.lock.lock();
    try {
      failure.throwIfBroken();
      return awaited.stream().boxed().toList();
    } finally {
      progress.lock.unlock();
    }
  }

  /**
   * Moves bytes until a goal is reached, and checks from time to time whether the set-up is to end.
   */
  private void drive(Goal goal, Store store, long deadline) {
    while (true) {
      long look = context.time.nanoTime() + LOOK_NANOS;
      boolean last = deadline - look <= 0;
      if (context.progress.drive(goal, last ? deadline : look, true) || last) {
        return;
      }
      boolean _ = store.check(ANY_KEY);
    }
  }

  private boolean isSettled() {
    return awaited.isEmpty() || failure.cause() != null;
  }

  /** Sends the messages between some ranks through shared memory from now on. */
  void share(int[] ranks, RingMemory memory) {
    assert context.progress.lock.isHeldByCurrentThread();
    int own = 0;
    while (ranks[own] != rank) {
      own++;
    }
    PairTraffic[] sharing = new PairTraffic[ranks.length - 1];
    for (int i = 0; i < ranks.length; i++) {
      if (i != own) {
        Pair pair = get(ranks[i]);
        pair.connection.share(
            new RingWriter(memory.ring(own, i)),
            new RingReader(memory.ring(i, own)),
            new Sleep(memory.sleep(i)));
        sharing[i < own ? i : i - 1] = pair.connection;
      }
    }
    context.progress.share(sharing, sharing.length == others.length, new Sleep(memory.sleep(own)));
  }

  /** Fails if a peer is known to have called a different collective than this rank. */
  void throwIfDisagreed() {
    for (Pair pair : others) {
      PeerMismatchException refusal = pair.disagreement();
      if (refusal != null) {
        throw refusal;
      }
    }
  }

  /** Returns the pair whose peer was the first to offer a message on a slot, if one did. */
  @Nullable Pair firstToOffer(long slot) {
    Pair first = null;
    long oldest = Long.MAX_VALUE;
    for (Pair pair : others) {
      long since = pair.offeredSince(slot);
      if (since >= 0 && since < oldest) {
        first = pair;
        oldest = since;
      }
    }
    return first;
  }

  /**
   * Returns why one of the peers failed if nothing more can be expected of any of them, or null.
   */
  @Nullable Throwable failureOfAll() {
    Throwable last = null;
    for (Pair pair : others) {
      last = pair.failure();
      if (last == null) {
        return null;
      }
    }
    return last;
  }

  /** Ends everything in progress and leaves the connections open. */
  void halt(Throwable cause) {
    for (Pair pair : others) {
      pair.halt(cause);
    }
  }

  /** Says farewell to Tutti ranks, and ends all connections at once. */
  void leave(long reason) {
    beginToLeave(reason);
    for (Pair pair : others) {
      pair.connection.close();
    }
    closeEnding();
  }

  /**
   * Says farewell to Tutti ranks, and ends each connection once the peer has read all; at once if
   * it was of no use before, or to a rank of PyTorch, which may keep its side open for long.
   *
   * @param cause what has halted all pairs
   */
  void end(long reason, Throwable cause) {
    beginToLeave(reason);
    for (Pair pair : others) {
      if (cause.equals(pair.failure()) && context.isTutti(pair.rank)) {
        pair.connection.end(ending);
      } else {
        pair.connection.close();
      }
    }
  }

  /** Returns, after {@link #end}, whether all connections have ended. */
  boolean haveEnded() {
    return ending.isEmpty();
  }

  /** Closes the connections that have not ended. */
  void closeEnding() {
    List.copyOf(ending).forEach(EndingConnection::close);
    List.copyOf(refused).forEach(EndingConnection::close);
  }

  private void beginToLeave(long reason) {
    // A peer whose connection is still being made reads the farewell from the ring. It looks there
    // when the connection ends, so the farewell comes first.
    for (Pair pair : others) {
      if (context.isTutti(pair.rank)) {
        pair.connection.sendFarewell(reason);
      }
    }
    closeListener();
    connectors.forEach(Connector::close);
    connectors.clear();
    hasLeft = true;
    late.forEach(this::closeLate);
    late.clear();
  }

  private void closeLate(SocketChannel channel) {
    context.log.closeQuietly(channel, "a late connection did not close cleanly");
  }

  private void closeListener() {
    if (listener != null) {
      listener.close();
      listener = null;
    }
    authentications.forEach(PeerAuthentication::close);
    authentications.clear();
    strangers.forEach(PeerAuthentication::close);
    strangers.clear();
    context.log.closeStrangers();
  }
}
