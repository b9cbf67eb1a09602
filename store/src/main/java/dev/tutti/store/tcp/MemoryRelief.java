package dev.tutti.store.tcp;

import dev.tutti.store.table.ServerMemory;

/** Drops clients of a store server when memory runs short. */
final class MemoryRelief {
  /*
   * The memory that clients make the server hold is counted (ServerMemory) and limited. If memory
   * runs out all the same, because the program in the same process uses it, a client is dropped,
   * together with what it held, before anything is logged. If a change of the keys was cut short,
   * all waiting clients are dropped, since some of them may have been missed.
   */
  private static final int MOST_IN_A_ROW = 64;

  private final ServerMemory memory;
  private final ServerClients clients;
  private int inARow;
  private boolean cutShort;

  MemoryRelief(ServerMemory memory, ServerClients clients) {
    this.memory = memory;
    this.clients = clients;
  }

  /** Drops the clients that hold most while all together hold too much. */
  void relieve() {
    while (memory.isCrowded()) {
      ServerConnection most = clients.heaviest();
      if (most == null) {
        return;
      }
      clients.refuse(most, "holds most", most.memory.crowdedMessage());
    }
  }

  /** Notes that a turn of the loop ended well. */
  void turned() {
    inARow = 0;
  }

  /**
   * Drops the client that holds most, after a turn of the loop ran out of memory.
   *
   * @throws OutOfMemoryError if there is none, or if one turn after another ended like this
   */
  void outOfMemory(OutOfMemoryError e) {
    ServerConnection most = clients.heaviest();
    if (most == null || ++inARow > MOST_IN_A_ROW) {
      throw e;
    }
    outOfMemory(most, e);
  }

  /** Notes that memory ran out during a change of the keys. */
  void changeCutShort() {
    cutShort = true;
  }

  /** Drops a client, and those that a change that was cut short may have missed. */
  void outOfMemory(ServerConnection client, OutOfMemoryError e) {
    clients.close(client);
    boolean all = cutShort;
    if (all) {
      clients.closeWaiting();
    }
    cutShort = false;
    clients.warn(
        client,
        "memory",
        e + "; check -Xmx" + (all ? "; all waiting clients are dropped too" : ""));
  }
}
