package org.example.central;

import dev.tutti.Store;
import dev.tutti.spi.BackendContext;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeoutException;

/**
 * The connection of a rank with every other one: the rank connects to those before it and accepts
 * connections from those after it.
 */
final class Meeting {
  private static final int CHECK_MILLIS = 50;

  private final BackendContext context;
  private final InetAddress address;
  private final long deadlineNanos;

  Meeting(BackendContext context, InetAddress address) {
    this.context = context;
    this.address = address;
    this.deadlineNanos = System.nanoTime() + context.timeout().toNanos();
  }

  /** Returns a started link for each other rank; on failure, nothing is left open. */
  Map<Integer, Link> connect(Mailbox mailbox) throws Exception {
    Map<Integer, Socket> sockets = new TreeMap<>();
    try (ServerSocket listener = new ServerSocket(0, context.size(), address)) {
      Store store = context.store();
      store.set(key(context.rank()), address.getHostAddress() + " " + listener.getLocalPort());
      for (int peer = 0; peer < context.rank(); peer++) {
        byte[] where = store.get(key(peer), left());
        call(peer, new String(where, StandardCharsets.UTF_8).split(" ", -1), sockets);
      }
      while (sockets.size() < context.size() - 1) {
        answer(listener, sockets);
      }
      Map<Integer, Link> links = new TreeMap<>();
      for (Map.Entry<Integer, Socket> entry : sockets.entrySet()) {
        links.put(
            entry.getKey(),
            new Link(entry.getValue(), context.group(), context.rank(), entry.getKey(), mailbox));
      }
      links.values().forEach(Link::start);
      return links;
    } catch (Exception e) {
      for (Socket socket : sockets.values()) {
        socket.close();
      }
      throw e;
    }
  }

  private static String key(int rank) {
    return "central/" + rank;
  }

  private void call(int peer, String[] where, Map<Integer, Socket> sockets) throws Exception {
    Socket socket = new Socket();
    sockets.put(peer, socket);
    socket.connect(new InetSocketAddress(where[0], Integer.parseInt(where[1])), leftMillis());
    DataOutputStream greeting = new DataOutputStream(socket.getOutputStream());
    greeting.writeUTF(context.group());
    greeting.writeInt(context.rank());
    socket.setTcpNoDelay(true);
  }

  private void answer(ServerSocket listener, Map<Integer, Socket> sockets) throws Exception {
    listener.setSoTimeout(Math.min(leftMillis(), CHECK_MILLIS));
    Socket socket;
    try {
      socket = listener.accept();
    } catch (SocketTimeoutException e) {
      if (left().isNegative()) {
        throw missing(sockets);
      }
      // Throws if another rank has failed, since the group then closes the store.
      context.store().check(List.of(key(context.rank())));
      return;
    }
    try {
      socket.setSoTimeout(leftMillis());
      DataInputStream greeting = new DataInputStream(socket.getInputStream());
      String group = greeting.readUTF();
      int peer = greeting.readInt();
      socket.setSoTimeout(0);
      socket.setTcpNoDelay(true);
      if (group.equals(context.group())
          && peer > context.rank()
          && peer < context.size()
          && sockets.putIfAbsent(peer, socket) == null) {
        return;
      }
    } catch (IOException e) {
      // A peer that disconnects, or says nothing, is not one of ours.
    }
    socket.close();
  }

  private TimeoutException missing(Map<Integer, Socket> sockets) {
    TreeSet<Integer> missing = new TreeSet<>();
    for (int peer = context.rank() + 1; peer < context.size(); peer++) {
      if (!sockets.containsKey(peer)) {
        missing.add(peer);
      }
    }
    return new TimeoutException(
        "rank " + context.rank() + " got no connection from ranks " + missing + " in time");
  }

  private Duration left() {
    return Duration.ofNanos(deadlineNanos - System.nanoTime());
  }

  /** Returns at least 1, since 0 would mean no timeout. */
  private int leftMillis() {
    return Math.clamp(left().toMillis(), 1, Integer.MAX_VALUE);
  }
}
