package dev.tutti.cli.run;

import dev.tutti.store.tcp.TcpStore;
import java.time.Duration;

/**
 * A rank that adds its number to a sum in the store and prints the sum once all ranks have added.
 */
final class StoreProgram {
  private StoreProgram() {}

  public static void main(String[] args) {
    int size = Integer.parseInt(System.getenv("WORLD_SIZE"));
    int port = Integer.parseInt(System.getenv("MASTER_PORT"));
    try (TcpStore store = new TcpStore(System.getenv("MASTER_ADDR"), port)) {
      store.add("sum", Long.parseLong(System.getenv("RANK")));
      store.barrier("all", size, Duration.ofMinutes(4));
      System.out.println("sum " + store.add("sum", 0));
      store.barrier("done", size, Duration.ofMinutes(4));
    }
  }
}
