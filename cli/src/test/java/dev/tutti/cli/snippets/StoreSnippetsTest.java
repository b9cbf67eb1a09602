package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.aeron.AeronStore;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.AeronStoreServer;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.file.FileStore;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the examples of the packages of stores. */
class StoreSnippetsTest {
  @Test
  void hash() {
    // @start region="hash"
    try (Store store = new HashStore()) { // shared by the threads of this process
      Store first = new PrefixStore("first/", store); // jobs that share a store do not meet
      Store second = new PrefixStore("second/", store);
      first.set("port", "4711");
      assertThat(second.check("port")).isFalse();
    }
    // @end
  }

  @Test
  void file(@TempDir Path folder) {
    // @start region="file"
    Path path = folder.resolve("meeting"); // where all ranks can open it
    try (FileStore store = new FileStore(path, 2)) { // for two ranks
      store.set("greeting", "hello");
      assertThat(store.getString("greeting")).isEqualTo("hello");
    }
    // @end
  }

  @Test
  void tcp() throws Exception {
    // @start region="tcp"
    try (TcpStoreServer server = new TcpStoreServer(0); // on any free port
        TcpStore store = new TcpStore("127.0.0.1", server.port())) {
      store.set("greeting", "hello");
      store.await(List.of("greeting"), Duration.ofMinutes(1));
    }
    // @end
  }

  /** Needs a JVM flag, and so is only compiled. */
  static void aeron() {
    // @start region="aeron"
    AeronStoreOptions options = AeronStoreOptions.of("127.0.0.1", 29500);
    try (AeronStoreServer server = new AeronStoreServer(options);
        AeronStore store = new AeronStore("127.0.0.1", server.port())) {
      store.set("greeting", "hello");
      System.out.println(store.getString("greeting"));
    }
    // @end
  }
}
