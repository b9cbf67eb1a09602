package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.cpu.memory.UserCount;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A channel that passes file descriptors between the ranks of a host (c10d: {@code IpcChannel}).
 * All ranks must make the same calls in the same order, one thread per rank at a time. Any thread
 * may cancel and close the channel. A rank that waits for another one notices through the store
 * when the other has moved on without sending or receiving.
 *
 * <p>A rank listens on a datagram socket in a directory that all ranks can access. The socket's
 * name and a token, both made from random numbers, are passed to the peers through the store;
 * messages without the receiver's token are discarded. So names never collide, whether ranks are
 * processes, threads, or in containers with their own PID namespaces, and messages are accepted
 * only from senders that can read the store.
 */
public final class IpcChannel implements AutoCloseable {
  private static final SecureRandom RANDOM = new SecureRandom();

  /** Do not block; do not raise signals; set close-on-exec on received descriptors. */
  private static final int SEND_FLAGS = 0x40 | 0x4000;

  private static final int RECEIVE_FLAGS = 0x40 | 0x40000000;
  private static final int ROUND_BITS = 20;
  private static final int RETRY_MILLIS = 1;
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
  private static final int SLICE_MILLIS = 250;

  private final int rank;
  private final Path path;
  private final byte[] token = new byte[FdMessage.TOKEN_BYTES];
  private final int socket;
  private final List<Peer> peers = new ArrayList<>();
  private final Map<Arrival, Integer> arrived = new HashMap<>();
  private final long[] sent;
  private final long[] received;
  private final StoreExchange exchange;
  private final UserCount users = new UserCount();
  private int refused;
  private volatile boolean cancelled;

  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Peer(String path, byte[] token) {}

  /** A sender and the round for which it sent a descriptor. */
  private record Arrival(int sender, long round) {}

  private IpcChannel(StoreExchange exchange, Path path) {
    this.exchange = exchange;
    this.rank = exchange.rank();
    this.path = path;
    this.sent = new long[exchange.size()];
    this.received = new long[exchange.size()];
    RANDOM.nextBytes(token);
    int length = path.toString().getBytes(StandardCharsets.UTF_8).length;
    if (length >= FdMessage.PATH_BYTES) {
      throw new BackendException(
          ("rank %s: the path of a socket can have %s bytes at most, but %s has %s; choose a"
                  + " shorter directory (TMPDIR)")
              .formatted(rank, FdMessage.PATH_BYTES - 1, path, length));
    }
    socket = LinuxSockets.datagramSocket();
    if (socket < 0) {
      throw failed("cannot create a socket", -socket);
    }
    int bound;
    try (Arena arena = Arena.ofConfined()) {
      bound = LinuxSockets.bind(socket, FdMessage.address(arena, path.toString()));
    }
    if (bound < 0) {
      LinuxSockets.close(socket);
      throw failed(
          "cannot create the socket "
              + path
              + "; is its directory writable? TMPDIR sets another directory",
          -bound);
    }
  }

  private BackendException failed(String what, int error) {
    return new BackendException("rank " + rank + ": " + what + " (error " + error + ")");
  }

  /**
   * Opens the channels of all ranks.
   *
   * @param directory a directory in which sockets can be created, the same on all ranks
   * @param exchange the group's exchange
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws BackendException on all ranks, if any of them cannot create its socket
   * @throws RendezvousException if a rank does not arrive in time
   */
  public static IpcChannel open(Path directory, StoreExchange exchange, long deadlineNanos) {
    String name =
        "tutti-%s-%s-%s"
            .formatted(
                ProcessHandle.current().pid(),
                exchange.rank(),
                HexFormat.of().toHexDigits(RANDOM.nextLong()));
    IpcChannel channel;
    try {
      channel = new IpcChannel(exchange, directory.resolve(name));
    } catch (BackendException e) {
      refuse(exchange, e, deadlineNanos);
      throw e;
    }
    try {
      exchange.allGather(channel.introduction(), deadlineNanos).forEach(channel::meet);
      return channel;
    } catch (RuntimeException | Error e) {
      channel.close();
      throw e;
    }
  }

  /**
   * Makes {@link #open} fail on all other ranks; called instead of it.
   *
   * @param exchange the group's exchange
   * @param reason why this rank does not open a channel
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   */
  public static void refuse(StoreExchange exchange, BackendException reason, long deadlineNanos) {
    String refusal = "!" + reason.getMessage();
    List<byte[]> _ = exchange.allGather(refusal.getBytes(StandardCharsets.UTF_8), deadlineNanos);
  }

  private byte[] introduction() {
    return ("+" + HexFormat.of().formatHex(token) + path).getBytes(StandardCharsets.UTF_8);
  }

  private void meet(byte[] introduction) {
    String text = new String(introduction, StandardCharsets.UTF_8);
    int tokenEnd = 1 + 2 * FdMessage.TOKEN_BYTES;
    if (!text.startsWith("+") || text.length() < tokenEnd) {
      throw new BackendException(
          "rank "
              + rank
              + ": rank "
              + peers.size()
              + " has no channel: "
              + Printable.line(text.substring(1)));
    }
    peers.add(new Peer(text.substring(tokenEnd), HexFormat.of().parseHex(text, 1, tokenEnd)));
  }

  /** Returns the path of the socket. */
  public Path path() {
    return path;
  }

  /**
   * Sends a descriptor; the receiver gets its own duplicate, and this one stays open.
   *
   * @param target the receiver
   * @param fd an open descriptor
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws RendezvousException if the receiver is gone or does not take the message by the
   *     deadline, or the wait is canceled
   * @throws BackendException if the receiver has moved on without receiving it
   */
  public void sendFd(int target, int fd, long deadlineNanos) {
    enter();
    try {
      send(target, fd, deadlineNanos);
    } finally {
      leave();
    }
  }

  private void send(int target, int fd, long deadlineNanos) {
    Peer peer = peers.get(target);
    long round = round(sent, target);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment header =
          FdMessage.of(arena, FdMessage.address(arena, peer.path), rank, round, peer.token, fd)
              .header();
      long nextLook = System.nanoTime() + SLICE_NANOS;
      while (!trySend(header, target, fd)) {
        requireWanted();
        if (System.nanoTime() - nextLook >= 0) {
          if (exchange.isAhead(target)) {
            throw new MissingDescriptorException(
                "rank %s: rank %s has moved on and receives no more descriptors"
                    .formatted(rank, target));
          }
          nextLook = System.nanoTime() + SLICE_NANOS;
        }
        if (deadlineNanos - System.nanoTime() <= 0) {
          throw new RendezvousException(
              "rank " + rank + ": rank " + target + " did not receive a descriptor in time");
        }
        // The receiver's queue is full: it may be waiting for this rank to receive.
        takeArrived(RETRY_MILLIS);
      }
    }
  }

  /**
   * Numbers the messages from one rank to another, restarting after each exchange. So ranks that
   * failed before they had sent or received everything are in step again once all ranks have
   * completed an exchange.
   */
  private long round(long[] rounds, int peer) {
    rounds[peer] = Math.max(rounds[peer], exchange.number() << ROUND_BITS);
    return rounds[peer]++;
  }

  /** Closes descriptors that a sender sent and that this rank did not request. */
  private void dropBefore(Arrival wanted) {
    arrived
        .entrySet()
        .removeIf(
            entry -> {
              Arrival arrival = entry.getKey();
              boolean stale =
                  arrival.sender() == wanted.sender() && arrival.round() < wanted.round();
              if (stale) {
                LinuxSockets.close(entry.getValue());
              }
              return stale;
            });
  }

  /** Sends a message; returns false if the send must be retried. */
  private boolean trySend(MemorySegment header, int target, int fd) {
    int result = LinuxSockets.send(socket, header, SEND_FLAGS);
    if (result >= 0) {
      return true;
    }
    return switch (-result) {
      case LinuxSockets.AGAIN, LinuxSockets.NO_BUFFERS, LinuxSockets.INTERRUPTED -> false;
      case LinuxSockets.NO_ENTRY, LinuxSockets.REFUSED ->
          throw new RendezvousException(
              ("rank %s: no process listens on the socket of rank %s, %s; the rank is gone, or its"
                      + " files are not visible here")
                  .formatted(rank, target, peers.get(target).path));
      default -> throw failed("cannot send descriptor " + fd + " to rank " + target, -result);
    };
  }

  /**
   * Receives the descriptor that a rank sends; the caller must close it.
   *
   * @param source the sender
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @throws RendezvousException if none arrives by the deadline, or the wait is canceled
   * @throws BackendException if the sender has moved on without sending it
   */
  public int recvFd(int source, long deadlineNanos) {
    enter();
    try {
      return receive(source, deadlineNanos);
    } finally {
      leave();
    }
  }

  private int receive(int source, long deadlineNanos) {
    Arrival wanted = new Arrival(source, round(received, source));
    dropBefore(wanted);
    boolean waited = false;
    while (true) {
      Integer fd = arrived.remove(wanted);
      if (fd != null) {
        return fd;
      }
      requireWanted();
      long left = deadlineNanos - System.nanoTime();
      if (left <= 0) {
        throw new RendezvousException(
            "rank %s: no descriptor arrived from rank %s in time%s"
                .formatted(
                    rank,
                    source,
                    refused == 0 ? "" : "; " + refused + " messages without the token arrived"));
      }
      if (waited && exchange.isAhead(source)) {
        drain();
        Integer last = arrived.remove(wanted);
        if (last != null) {
          return last;
        }
        throw new MissingDescriptorException(
            "rank " + rank + ": rank " + source + " has moved on without sending a descriptor");
      }
      waited = !takeArrived((int) Math.min(SLICE_MILLIS, left / 1_000_000 + 1));
    }
  }

  /**
   * Gives each rank a descriptor from every other rank.
   *
   * @param fd this rank's descriptor, which stays open
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @return the descriptors by rank; the caller must close all but its own, which is {@code fd}
   * @throws RendezvousException if a rank fails; the message names it
   */
  public int[] allGatherFds(int fd, long deadlineNanos) {
    int[] all = new int[peers.size()];
    Arrays.fill(all, -1);
    try {
      for (int i = 1; i < all.length; i++) {
        sendFd((rank + i) % all.length, fd, deadlineNanos);
      }
      for (int r = 0; r < all.length; r++) {
        all[r] = r == rank ? fd : recvFd(r, deadlineNanos);
      }
      return all;
    } catch (RuntimeException | Error e) {
      for (int r = 0; r < all.length; r++) {
        if (r != rank && all[r] >= 0) {
          LinuxSockets.close(all[r]);
        }
      }
      throw e;
    }
  }

  /**
   * Gives each rank a descriptor from one of them (c10d: {@code broadcast_fds}). The project itself
   * does not call this method: it is meant for extensions in which one rank creates an object that
   * all use, such as a multicast object.
   *
   * @param root the rank whose descriptor is sent
   * @param fd the root's descriptor, which stays open; ignored on other ranks
   * @param deadlineNanos the deadline, in terms of {@link System#nanoTime()}
   * @return {@code fd} on the root, otherwise a descriptor that the caller must close
   * @throws RendezvousException if a rank fails; the message names it
   */
  public int broadcastFds(int root, int fd, long deadlineNanos) {
    if (rank != root) {
      return recvFd(root, deadlineNanos);
    }
    for (int r = 0; r < peers.size(); r++) {
      if (r != rank) {
        sendFd(r, fd, deadlineNanos);
      }
    }
    return fd;
  }

  /**
   * Receives one message if it arrives within the given number of milliseconds; returns false if
   * none does.
   */
  private boolean takeArrived(int millis) {
    int ready = LinuxSockets.awaitReadable(socket, millis);
    if (ready < 0 && ready != -LinuxSockets.INTERRUPTED) {
      throw failed("cannot wait on the socket", -ready);
    }
    if (ready <= 0) {
      return false;
    }
    try (Arena arena = Arena.ofConfined()) {
      FdMessage message = FdMessage.empty(arena);
      MemorySegment header = message.header();
      int length = LinuxSockets.receive(socket, header, RECEIVE_FLAGS);
      if (length == -LinuxSockets.AGAIN || length == -LinuxSockets.INTERRUPTED) {
        return false;
      }
      if (length < 0) {
        throw failed("cannot receive from the socket", -length);
      }
      int[] descriptors = message.descriptors();
      Arrival arrival = new Arrival(message.sender(), message.round());
      if (message.isValid(length, token) && !arrived.containsKey(arrival)) {
        arrived.put(arrival, descriptors[0]);
      } else {
        refused++;
        for (int fd : descriptors) {
          LinuxSockets.close(fd);
        }
      }
      return true;
    }
  }

  /** Closes a descriptor that this channel returned. */
  public static void closeFd(int fd) {
    LinuxSockets.close(fd);
  }

  private void enter() {
    if (!users.enter()) {
      throw new IllegalStateException("the channel of rank " + rank + " is closed");
    }
  }

  private void leave() {
    if (users.leave()) {
      free();
    }
  }

  private void requireWanted() {
    if (cancelled || users.isClosed()) {
      throw new RendezvousException(
          "rank " + rank + ": the group ended while descriptors were being passed");
    }
  }

  /** Cancels the wait of a call in progress, and of all later ones. */
  public void cancel() {
    cancelled = true;
  }

  /**
   * Closes the socket, removes its file, and closes descriptors that arrived without being
   * requested. If a call is in progress, it ends soon and does this then, since the socket's number
   * may be reused once closed.
   */
  @Override
  public void close() {
    if (users.close()) {
      leave();
    }
  }

  private void free() {
    drain();
    arrived.values().forEach(LinuxSockets::close);
    arrived.clear();
    LinuxSockets.close(socket);
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot remove " + path, e);
    }
  }

  /**
   * Receives what is still in the socket; otherwise it would be left to the kernel to close the
   * descriptors in it.
   */
  private void drain() {
    while (takeArrived(0)) {
      // Continue with the next one.
    }
  }
}
