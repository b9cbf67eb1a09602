package dev.tutti.contracts.history;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** A way to a server on this host whose connections can be cut. */
final class CutConnections implements AutoCloseable {
  private final ServerSocket listener;
  private final int server;
  private final List<Socket> sockets = new ArrayList<>();
  private int accepted;

  CutConnections(int server) throws IOException {
    this.server = server;
    this.listener = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
    start(this::accept);
  }

  private interface Action {
    void run() throws IOException;
  }

  private static void start(Action action) {
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              try {
                action.run();
              } catch (IOException e) {
                // Cut, or closed.
              }
            });
  }

  private void accept() throws IOException {
    while (true) {
      Socket client = listener.accept();
      Socket there = new Socket(InetAddress.getLoopbackAddress(), server);
      client.setTcpNoDelay(true);
      there.setTcpNoDelay(true);
      synchronized (sockets) {
        accepted++;
        sockets.add(client);
        sockets.add(there);
      }
      start(() -> pass(client, there));
      start(() -> pass(there, client));
    }
  }

  private static void pass(Socket from, Socket to) throws IOException {
    try (from;
        to;
        InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream()) {
      var _ = in.transferTo(out);
    }
  }

  int port() {
    return listener.getLocalPort();
  }

  /** Returns how many connections have been made. */
  int accepted() {
    synchronized (sockets) {
      return accepted;
    }
  }

  /** Cuts all connections; what is on its way is lost. */
  void cut() throws IOException {
    synchronized (sockets) {
      for (Socket socket : sockets) {
        socket.close();
      }
      sockets.clear();
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
    cut();
  }
}
