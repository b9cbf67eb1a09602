package dev.tutti.aeron;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/** Serves all clients on one thread, which owns the keys. */
final class ServerAgent implements Runnable {
  private static final Logger LOG = System.getLogger(AeronStoreServer.class.getName());

  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private final List<ServerClient> clients = new ArrayList<>();
  private final ServerCommands commands = new ServerCommands();
  private final Idling idling;
  private final long stuckNanos;
  private final String server;
  private volatile boolean stopped;

  ServerAgent(String server, long stuckNanos, boolean spin) {
    this.server = server;
    this.stuckNanos = stuckNanos;
    this.idling = new Idling(spin);
  }

  ServerCommands commands() {
    return commands;
  }

  /** Begins to serve a client; called from any thread. */
  void add(ServerClient client) {
    tasks.add(() -> clients.add(client));
  }

  /** Ends the session of a client; called from any thread. */
  void remove(ServerClient client, String why) {
    tasks.add(
        () -> {
          if (clients.remove(client)) {
            LOG.log(Level.DEBUG, "{0}: client {1} left: {2}", server, client.peer, why);
            client.close();
          }
        });
  }

  /** Ends the thread; called from any other. */
  void stop() {
    stopped = true;
  }

  @Override
  public void run() {
    try {
      while (!stopped) {
        idling.after(work() > 0);
      }
    } catch (RuntimeException | Error e) {
      LOG.log(Level.ERROR, server + " ends: " + e, e);
    } finally {
      runTasks();
      clients.forEach(ServerClient::close);
      clients.clear();
    }
  }

  private int work() {
    int done = runTasks();
    for (int i = 0; i < clients.size(); i++) {
      ServerClient client = clients.get(i);
      try {
        done += client.work();
      } catch (RuntimeException e) {
        LOG.log(Level.WARNING, server + ": " + e, e);
        drop(client, e.toString());
      }
    }
    if (done == 0) {
      dropLost();
    }
    return done;
  }

  private int runTasks() {
    int done = 0;
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
      done++;
    }
    return done;
  }

  private void dropLost() {
    long now = System.nanoTime();
    for (int i = clients.size() - 1; i >= 0; i--) {
      @Nullable String why = clients.get(i).lost(now, stuckNanos);
      if (why != null) {
        drop(clients.get(i), why);
      }
    }
  }

  private void drop(ServerClient client, String why) {
    LOG.log(Level.WARNING, "{0} drops client {1}: {2}", server, client.peer, why);
    clients.remove(client);
    client.close();
  }
}
