import dev.tutti.store.TcpStoreServer;

/** Serves a TcpStore on a free port, prints {@code PORT n}, and ends with its input. */
public class StoreServer {
  public static void main(String[] args) throws Exception {
    try (TcpStoreServer server = new TcpStoreServer(0)) {
      System.out.println("PORT " + server.port());
      while (System.in.read() >= 0) {
        // Only the end of the input counts.
      }
    }
  }
}
