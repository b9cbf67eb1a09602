import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.store.tcp.TcpStoreServer;
import java.net.InetAddress;

/**
 * Serves a store on a free port, prints {@code PORT n}, and exits when its input ends. Argument:
 * tcp (the default) or aeron.
 */
public class StoreServer {
  public static void main(String[] args) throws Exception {
    if (args.length > 0 && args[0].equals("aeron")) {
      try (AeronStoreServer server =
          new AeronStoreServer(
              AeronStoreOptions.of("127.0.0.1", 0), InetAddress.getLoopbackAddress())) {
        serve(server.port());
      }
    } else {
      try (TcpStoreServer server = new TcpStoreServer(0)) {
        serve(server.port());
      }
    }
  }

  private static void serve(int port) throws Exception {
    System.out.println("PORT " + port);
    while (System.in.read() >= 0) {
      // Only the end of the input matters.
    }
  }
}
