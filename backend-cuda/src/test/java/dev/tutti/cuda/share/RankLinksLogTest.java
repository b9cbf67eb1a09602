package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.cuda.Warnings;
import dev.tutti.store.HashStore;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what {@link RankLinks} logs. */
@Isolated("reads the log")
class RankLinksLogTest {
  @TempDir private Path directory;

  /** Connects to a rank that encrypts, without speaking TLS. */
  @Test
  void whoCannotBeEncryptedIsToldOfInAFewLines() throws Exception {
    HashStore store = new HashStore();
    List<byte[]> published = new ArrayList<>();
    Store recording =
        (Store)
            Proxy.newProxyInstance(
                Store.class.getClassLoader(),
                new Class<?>[] {Store.class},
                (proxy, method, arguments) -> {
                  if (method.getName().equals("set")) {
                    published.add((byte[]) arguments[1]);
                  }
                  return method.invoke(store, arguments);
                });
    SSLContext tls = RankLinksTest.tls(directory, "authority", "rank");
    CompletableFuture<RankLinks> other =
        CompletableFuture.supplyAsync(
            () -> RankLinksTest.open(tls, new StoreExchange(store, "test", 1, 2)));
    List<String> told;
    try (Warnings warnings = new Warnings(RankLinks.class, line -> true)) {
      try (RankLinks links = RankLinksTest.open(tls, new StoreExchange(recording, "test", 0, 2))) {
        links.listen(new RankLinksTest.Notes(0));
        String introduction = new String(published.getFirst(), StandardCharsets.UTF_8);
        int port = Integer.parseInt(introduction.substring(17, introduction.indexOf(' ')));
        for (int i = 0; i < 100; i++) {
          try (Socket stranger = new Socket(InetAddress.getLoopbackAddress(), port)) {
            stranger.setSoTimeout(60_000);
            stranger
                .getOutputStream()
                .write("GET / HTTP/1.1\r\n".getBytes(StandardCharsets.US_ASCII));
            RankLinksTest.readToTheEnd(stranger);
          }
        }
      }
      told = warnings.messages();
    } finally {
      other.get(60, TimeUnit.SECONDS).close();
    }
    assertThat(told)
        .hasSizeLessThan(20)
        .allMatch(line -> line.contains("cannot be encrypted"))
        .anyMatch(line -> line.contains(" more from 127.0.0.1 in the last "));
  }
}
