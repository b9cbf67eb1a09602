package dev.tutti.gloo.transport;

import dev.tutti.RendezvousException;
import dev.tutti.cpu.wait.HostCores;
import dev.tutti.gloo.transport.connect.AddressExchange;
import dev.tutti.gloo.transport.connect.BlobSeal;
import dev.tutti.gloo.transport.connect.Neighbors;
import dev.tutti.gloo.transport.connect.NetworkId;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.gloo.transport.connect.ProtectionAgreement;
import dev.tutti.gloo.transport.connect.RankBlob;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.PeerLateException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Brings the ranks of a group together: each rank listens, publishes its address and reads the
 * addresses of the others. Of each pair, the rank with the greater address connects (Gloo: {@code
 * rendezvous/context.cc}). If there are many ranks and all are Tutti ranks, not all pairs connect
 * at once; see {@link Neighbors}.
 */
public final class TransportRendezvous {
  private static final int MIN_BACKLOG = 128;

  private final BackendContext context;
  private final InetAddress address;
  private final SelectorProvider channels;
  private final boolean lazy;
  private final boolean rankAsSequence;
  private final Protection protection;
  private final int rank;
  private final int size;
  private int localRanks = 1;
  private boolean allTutti = true;

  /**
   * Prepares a rendezvous.
   *
   * @param context the rank, its group, the store, and how to protect connections
   * @param address the address to listen on
   * @param lazy whether PyTorch ranks connect when they first use a pair
   * @param rankAsSequence whether ranks present their rank number
   */
  public TransportRendezvous(
      BackendContext context, InetAddress address, boolean lazy, boolean rankAsSequence) {
    this(context, address, SelectorProvider.provider(), lazy, rankAsSequence);
  }

  /**
   * Prepares a rendezvous over channels of some kind.
   *
   * @param context the rank, its group, the store, and how to protect connections
   * @param address the address to listen on
   * @param channels opens the channels
   * @param lazy whether PyTorch ranks connect when they first use a pair
   * @param rankAsSequence whether ranks present their rank number
   */
  public TransportRendezvous(
      BackendContext context,
      InetAddress address,
      SelectorProvider channels,
      boolean lazy,
      boolean rankAsSequence) {
    this.context = context;
    this.address = address;
    this.channels = channels;
    this.lazy = lazy;
    this.rankAsSequence = lazy || rankAsSequence;
    this.protection = Protection.of(context.settings());
    this.rank = context.rank();
    this.size = context.size();
  }

  /**
   * Connects to peers, within the context's timeout. If ranks connect lazily, does only this side's
   * part and returns.
   *
   * @param spin how long a waiting thread polls before it blocks, unless ranks outnumber cores on
   *     this host
   * @throws RendezvousException naming the ranks that are still missing at the end
   * @throws Exception if the store fails or a peer cannot be reached
   */
  public Transport connect(Duration spin) throws Exception {
    long deadline = context.deadlineNanos();
    Transport transport = new Transport(context, protection, channels);
    try {
      meet(transport, deadline);
      transport.progress.start(spinNanos(spin));
      return transport;
    } catch (Exception | Error e) {
      transport.abort(e);
      transport.close();
      throw e;
    }
  }

  /**
   * Returns how long a waiting thread is to poll: not at all if ranks outnumber cores, because a
   * polling rank would keep its peer from running. Must be called after {@link #connect}.
   *
   * @param spin the requested time
   */
  public long spinNanos(Duration spin) {
    return isCrowded() ? 0 : spin.toNanos();
  }

  /** Returns, after {@link #connect}, whether ranks outnumber cores on this host. */
  public boolean isCrowded() {
    return localRanks > HostCores.count(context.settings());
  }

  /** Returns, after {@link #connect}, whether all ranks run Tutti. */
  public boolean isAllTutti() {
    return allTutti;
  }

  private void meet(Transport transport, long deadline) throws Exception {
    if (size == 1) {
      return;
    }
    ServerSocketChannel server = channels.openServerSocketChannel();
    try {
      server.bind(new InetSocketAddress(address, 0), Math.max(MIN_BACKLOG, size));
      transport.pairs.listen(server);
    } catch (IOException e) {
      server.close();
      throw new RendezvousException(
          transport.self()
              + " cannot listen on "
              + address.getHostAddress()
              + ": "
              + e.getMessage(),
          e);
    }
    PeerAddress mine =
        new PeerAddress(
            (InetSocketAddress) server.getLocalAddress(),
            -1,
            true,
            NetworkId.own(),
            protection.flags());
    long[] identifiers = LongStream.range(0, rankAsSequence ? 0 : size).toArray();
    RankBlob own = new RankBlob(hostname(), mine, identifiers);
    AddressExchange exchange = AddressExchange.of(context.bootstrap(), own, this::sealed, deadline);
    List<byte[]> published = exchange.published();
    RankBlob[] blobs = new RankBlob[size];
    for (int peer = 0; peer < size; peer++) {
      blobs[peer] = read(peer, published.get(peer), exchange.identifiers());
    }
    new ProtectionAgreement(protection, transport.self(), context.group(), blobs)
        .require(published);
    refuseLoopbackBetweenHosts(transport, blobs);
    localRanks = 0;
    for (RankBlob blob : blobs) {
      localRanks += blob.hostname().equals(own.hostname()) ? 1 : 0;
      allTutti &= blob.address().tutti();
    }
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        boolean now = !allTutti || Neighbors.areNear(rank, peer, size);
        join(transport, own, peer, blobs[peer], exchange.identifiers() > 0, now);
      }
    }
    if (!lazy) {
      List<Integer> missing = transport.pairs.awaitConnected(context.store(), deadline);
      if (!missing.isEmpty()) {
        String refusal = transport.pairs.refusal();
        String text = transport.self() + ": no connection with " + PeerLateException.ranks(missing);
        if (!refusal.isEmpty()) {
          throw new RendezvousException(text + refusal);
        }
        throw new RendezvousException(
            text + " within " + context.timeout().toMillis() + " ms",
            new PeerLateException(missing, "did not connect"));
      }
    }
  }

  private static void refuseLoopbackBetweenHosts(Transport transport, RankBlob[] blobs) {
    if (areOnOneNetwork(blobs)) {
      return;
    }
    for (int listener = 0; listener < blobs.length; listener++) {
      InetAddress listens = blobs[listener].address().socket().getAddress();
      for (int peer = 0; peer < blobs.length && listens.isLoopbackAddress(); peer++) {
        if (blobs[peer].isElsewhere(blobs[listener])) {
          throw new RendezvousException(
              transport.self()
                  + ": rank "
                  + listener
                  + " listens at "
                  + listens.getHostAddress()
                  + ", a loopback address, which rank "
                  + peer
                  + " on another host cannot reach; on rank "
                  + listener
                  + " set GLOO_SOCKET_IFNAME to a network interface, or MASTER_ADDR to an address"
                  + " that all hosts reach");
        }
      }
    }
  }

  private static boolean areOnOneNetwork(RankBlob[] blobs) {
    long network = blobs[0].address().network();
    return network != NetworkId.UNKNOWN
        && Arrays.stream(blobs).allMatch(blob -> blob.address().network() == network);
  }

  private byte[] sealed(RankBlob blob) {
    byte[] bytes = blob.toBytes();
    BlobSeal.put(bytes, protection.token(), context.group(), rank);
    return bytes;
  }

  private void join(
      Transport transport, RankBlob own, int peer, RankBlob blob, boolean identified, boolean now)
      throws IOException {
    long expected = identified ? own.identifiers()[peer] : peer;
    long presented = identified ? blob.identifiers()[rank] : rank;
    int role;
    try {
      role = own.address().compareRole(blob.address(), expected, presented);
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(
          transport.self() + " cannot connect to rank " + peer + ": " + e.getMessage(), e);
    }
    if (role == 0) {
      throw new RendezvousException(
          transport.self()
              + " and rank "
              + peer
              + " published the same address, "
              + PeerAddress.text(blob.address().socket()));
    }
    if (role > 0) {
      transport.pairs.connect(peer, blob.address(), presented, now);
    } else {
      transport.pairs.expect(peer, blob.address(), expected, now);
    }
  }

  private RankBlob read(int peer, byte[] bytes, int identifierCount) {
    try {
      return RankBlob.read(bytes, identifierCount);
    } catch (IllegalArgumentException e) {
      throw new RendezvousException(
          "rank "
              + rank
              + " of group "
              + context.group()
              + " cannot read the Gloo address of rank "
              + peer
              + ": "
              + e.getMessage(),
          e);
    }
  }

  static String hostname() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
    } catch (IOException e) {
      try {
        return InetAddress.getLocalHost().getHostName();
      } catch (IOException unknown) {
        return "localhost";
      }
    }
  }
}
