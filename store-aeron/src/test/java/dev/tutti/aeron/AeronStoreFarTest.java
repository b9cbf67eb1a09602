package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;
import dev.tutti.store.JobToken;
import dev.tutti.store.PrefixStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/**
 * Tests the contract on a server in another network namespace; on the way to it one packet in a
 * hundred is lost, and all others take 5 ms.
 */
@Tag("full")
class AeronStoreFarTest extends StoreContract {
  private static final double LOSS = 0.01;
  private static final int DELAY_MILLIS = 5;
  private static final long PID = ProcessHandle.current().pid();
  private static final String NAMESPACE = "tuttifar" + PID;

  @TempDir private static Path directory;

  private static SlowLink link;
  private static StoreChild server;
  private static AeronStore store;
  private static int tests;

  private static void ip(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(List.of(command) + ": " + output.strip());
    }
  }

  @BeforeAll
  static void startServer() throws Exception {
    String here = "tf" + PID;
    String there = "tg" + PID;
    String net = "10.214." + (PID & 0xff) + ".";
    try {
      link = new SlowLink(here, there, LOSS, DELAY_MILLIS);
      ip("ip", "netns", "add", NAMESPACE);
      ip("ip", "link", "set", there, "netns", NAMESPACE);
      ip("ip", "address", "add", net + "1/30", "dev", here);
      ip("ip", "link", "set", here, "up");
      ip("ip", "-n", NAMESPACE, "address", "add", net + "2/30", "dev", there);
      ip("ip", "-n", NAMESPACE, "link", "set", there, "up");
      ip("ip", "-n", NAMESPACE, "link", "set", "lo", "up");
    } catch (IOException e) {
      String reason = "needs root and TUN devices for a network namespace: " + e.getMessage();
      System.out.println("skipped: " + reason);
      throw new TestAbortedException(reason, e);
    }
    server =
        StoreChild.start(
            List.of("ip", "netns", "exec", NAMESPACE),
            "256m",
            "serve",
            0,
            "TUTTI_AERON_DIR=" + directory);
    String ready = server.line();
    assertThat(ready).startsWith("READY ");
    store =
        new AeronStore(
            AeronStoreOptions.of(net + "2", Integer.parseInt(ready.substring(6)))
                .withDirectory(directory)
                .withToken(JobToken.NONE)
                .withTransport(AeronStoreOptions.Transport.UDP));
  }

  @AfterAll
  static void closeServer() throws Exception {
    if (store != null) {
      store.close();
      assertThat(link.lost()).isPositive();
    }
    if (server != null) {
      server.close();
    }
    if (link != null) {
      link.close();
    }
    try {
      ip("ip", "netns", "delete", NAMESPACE);
    } catch (IOException e) {
      System.out.println("already gone: " + e.getMessage());
    }
  }

  @Override
  protected Store open() {
    SharedStore.deleteAll(store);
    return new PrefixStore("test" + ++tests, store);
  }
}
