package dev.tutti.contracts;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.peer.libtorch.PeerArguments;
import dev.tutti.store.file.FileStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Shares a store file between Tutti and libtorch. */
@Execution(ExecutionMode.CONCURRENT)
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class FileStoreInteropTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @TempDir private Path directory;

  @BeforeAll
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  static void loadsLibtorch() {
    LibtorchStore.prepare();
  }

  private static LibtorchStore theirs(Path file) {
    return new LibtorchStore(PeerArguments.file(1, 2, file.toString()));
  }

  /** Lists the keys; libtorch's include those of the file's keepers, without their first letter. */
  private static List<String> theirsListed(LibtorchStore theirs) {
    return Arrays.stream(theirs.run("store_list_keys").split(","))
        .filter(key -> !key.startsWith("efcount/") && !key.startsWith("utti/"))
        .toList();
  }

  @Test
  void bothReadAndWriteTheFile() throws Exception {
    Path file = directory.resolve("store");
    try (Calls calls = new Calls();
        LibtorchStore theirs = theirs(file);
        Store ours = new FileStore(file, 2, LONG)) {
      ours.set("a", "from-tutti");
      assertThat(theirs.run("store_get a")).isEqualTo("from-tutti");
      theirs.run("store_set b from-libtorch");
      assertThat(ours.get("b")).asString(UTF_8).isEqualTo("from-libtorch");
      theirs.run("store_set empty -");
      assertThat(ours.get("empty")).isEmpty();

      assertThat(ours.add("n", 40)).isEqualTo(40);
      assertThat(theirs.run("store_add n 2")).isEqualTo("42");
      assertThat(ours.add("n", 0)).isEqualTo(42);

      byte[] tutti = "from-tutti".getBytes(UTF_8);
      assertThat(ours.compareSet("a", tutti, "swapped".getBytes(UTF_8)).stored()).isTrue();
      assertThat(theirs.run("store_compare_set a swapped again")).isEqualTo("again");
      assertThat(ours.compareSet("a", tutti, tutti).value()).asString(UTF_8).isEqualTo("again");

      theirs.run("store_append log one,");
      ours.append("log", "two".getBytes(UTF_8));
      assertThat(theirs.run("store_get log")).isEqualTo("one,two");

      assertThat(ours.deleteKey("b")).isTrue();
      assertThat(theirs.run("store_check b")).isEqualTo("false");
      theirs.run("store_delete n");
      assertThat(ours.check(List.of("n"))).isFalse();
      assertThat(ours.listKeys()).containsExactly("a", "empty", "log");
      assertThat(theirsListed(theirs)).containsExactly("a", "empty", "log");

      // Data that only Tutti uses does not disturb the others.
      ours.queuePush("queue", tutti);
      ours.barrier("barrier", 1, LONG);
      assertThat(theirsListed(theirs)).containsExactly("a", "empty", "log");
      assertThat(theirs.run("store_check queue")).isEqualTo("false");
      assertThat(theirs.run("store_get log")).isEqualTo("one,two");
      assertThat(ours.queuePop("queue", Duration.ZERO)).isEqualTo(tutti);

      Future<byte[]> get = calls.start(() -> ours.get("x", LONG));
      Calls.assertBlocked(get);
      theirs.run("store_set x 1");
      assertThat(Calls.ended(get)).asString(UTF_8).isEqualTo("1");
      theirs.send("store_wait y");
      ours.set("y", "1");
      assertThat(theirs.reply()).isEmpty();
    }
  }

  @Test
  void neitherLosesWhatBothAdd() throws Exception {
    Path file = directory.resolve("store");
    int each = 300;
    try (LibtorchStore theirs = theirs(file);
        Store ours = new FileStore(file, 2, LONG)) {
      for (int i = 0; i < each; i++) {
        theirs.send("store_add count 1");
      }
      for (int i = 0; i < each; i++) {
        ours.add("count", 1);
      }
      for (int i = 0; i < each; i++) {
        assertThat(theirs.reply()).isNotEmpty();
      }
      assertThat(ours.add("count", 0)).isEqualTo(2L * each);
      assertThat(theirs.run("store_add count 0")).isEqualTo(Integer.toString(2 * each));
    }
  }

  @Test
  void libtorchOpensAFileOfOurs() {
    Path file = directory.resolve("store");
    try (Store ours = new FileStore(file, 2, LONG)) {
      ours.set("key", "value");
      try (LibtorchStore theirs = theirs(file)) {
        assertThat(theirs.run("store_get key")).isEqualTo("value");
        // The value, libtorch's count of the file's users, and Tutti's count.
        assertThat(theirs.run("store_num_keys")).isEqualTo("3");
      }
    }
  }
}
