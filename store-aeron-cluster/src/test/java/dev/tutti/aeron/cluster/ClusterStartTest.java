package dev.tutti.aeron.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.aeron.AeronStoreOptions;
import dev.tutti.aeron.LogLines;
import dev.tutti.aeron.StoreChild;
import dev.tutti.store.JobToken;
import dev.tutti.testkit.Tmpfs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what a member finds in its folder when it starts, and how it leaves it. */
@Timeout(300)
class ClusterStartTest {
  private static final int PAGE = 4096;

  @TempDir private Path directory;

  private final String member = TestCluster.freeMember();

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("localhost", 0)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withLease(Duration.ofSeconds(3))
        .withTimeout(Duration.ofSeconds(100));
  }

  private AeronClusterServer start(Path data) {
    return new AeronClusterServer(member, 0, data, options());
  }

  /** Returns whether the log ends in a fragment with a page that holds nothing but zeros. */
  private static boolean endsInZeros(Path data) throws IOException {
    List<Integer> fragments = fragments(data);
    int end = fragments.getLast();
    int last = end == 0 ? 0 : fragments.get(fragments.size() - 2);
    byte[] bytes = Files.readAllBytes(data.resolve("archive").resolve("0-0.rec"));
    int page = (last / PAGE + 1) * PAGE;
    for (int at = page; at < Math.min(end, page + PAGE); at++) {
      if (bytes[at] != 0) {
        return false;
      }
    }
    return page < end;
  }

  private static void copy(Path from, Path to) throws IOException {
    try (Stream<Path> all = Files.walk(from)) {
      for (Path path : all.toList()) {
        Files.copy(path, to.resolve(from.relativize(path).toString()));
      }
    }
  }

  @Test
  void aMemberKilledAfterAValueOfZerosStartsAgainWithIt() throws Exception {
    Path data = directory.resolve("data");
    Path killed = directory.resolve("killed");
    int keys = 0;
    try (AeronClusterServer server = start(data);
        Store store = new AeronClusterStore(member, options())) {
      assertThat(server.isRunning()).isTrue();
      while (!endsInZeros(data)) {
        store.set("key" + keys++, new byte[1300]);
      }
      copy(data, killed); // what kill -9 leaves
    }
    try (AeronClusterServer server = start(killed);
        Store store = new AeronClusterStore(member, options())) {
      assertThat(server.isRunning()).isTrue();
      assertThat(store.get("key" + (keys - 1))).isEqualTo(new byte[1300]);
      assertThat(store.keyCount()).isEqualTo(keys);
    }
  }

  /** Returns where the fragments of the log begin, and where the last of them ends. */
  private static List<Integer> fragments(Path data) throws IOException {
    byte[] bytes = Files.readAllBytes(data.resolve("archive").resolve("0-0.rec"));
    ByteBuffer log = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    List<Integer> all = new ArrayList<>();
    int end = 0;
    while (log.getInt(end) > 0) {
      all.add(end);
      end += (log.getInt(end) + 31) / 32 * 32;
    }
    all.add(end);
    return all;
  }

  /** Aeron by itself reads a recording in parts of 1 MiB. */
  @Test
  void aMemberStartsWhoseLogEndsWithAPart() throws Exception {
    int part = 1 << 20;
    Path data = directory.resolve("data");
    Path killed = directory.resolve("killed");
    try (AeronClusterServer server = start(data);
        Store store = new AeronClusterStore(member, options())) {
      store.set("key", "value");
      int end = 0;
      while (end < part - 7_000) {
        store.set("some", new byte[end < part - 40_000 ? 20_000 : 100]);
        end = fragments(data).getLast();
      }
      store.set("large", new byte[25_000]); // whose first frame does not fit before the end
      copy(data, killed);
      assertThat(server.isRunning()).isTrue();
    }
    List<Integer> fragments = fragments(killed);
    int last = fragments.get(fragments.indexOf(part) - 1);
    assertThat(part - last).isGreaterThan(PAGE);
    Path log = killed.resolve("archive").resolve("0-0.rec");
    long length = Files.size(log);
    try (RandomAccessFile file = new RandomAccessFile(log.toFile(), "rw")) {
      file.setLength(part);
      file.setLength(length);
    }
    try (StoreChild child =
        ClusterChild.start(
            "member",
            0,
            "MEMBERS=" + member,
            "DATA=" + killed,
            "TUTTI_AERON_LEASE=3s",
            "TUTTI_AERON_DIR=" + directory)) {
      assertThat(child.line()).isEqualTo("READY true");
      try (Store store = new AeronClusterStore(member, options())) {
        assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
      }
    }
  }

  @Test
  void nobodyElseMayReadTheLog() throws Exception {
    Path data = directory.resolve("data");
    try (AeronClusterServer server = start(data)) {
      assertThat(server.isRunning()).isTrue();
      for (Path folder : List.of(data, data.resolve("archive"), data.resolve("cluster"))) {
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)))
            .as(folder.toString())
            .isEqualTo("rwx------");
      }
    }
  }

  /** The times of a member come from its lease; Aeron's own would end it on a busy machine. */
  @ParameterizedTest
  @ValueSource(strings = {"aeron.archive.message.timeout", "aeron.archive.connect.timeout"})
  void aMemberWaitsForItsOwnArchiveForAsLongAsItsLeaseSays(String limit) {
    System.setProperty(limit, "1us");
    try (AeronClusterServer server = start(directory.resolve("data"));
        Store store = new AeronClusterStore(member, options())) {
      assertThat(store.add("count", 1)).isEqualTo(1);
      assertThat(server.isRunning()).isTrue();
    } finally {
      System.clearProperty(limit);
    }
  }

  @Test
  void aMemberWithAFullDiskSaysSoAndStartsWhenThereIsRoom() throws Exception {
    Path disk = Files.createDirectory(directory.resolve("disk"));
    try (Tmpfs tmpfs = Tmpfs.mount(disk, "size=40m")) {
      Path data = disk.resolve("data");
      Path filler = tmpfs.directory().resolve("filler");
      Files.write(filler, new byte[36 << 20]);
      assertThatThrownBy(() -> start(data))
          .isInstanceOf(StoreException.class)
          .hasMessageMatching(
              "disk full: "
                  + data
                  + " has [34]\\.\\d MiB left, but a member of a store cluster needs"
                  + " 16.0 MiB to start; it starts again when there is room");
      Files.delete(filler);
      try (AeronClusterServer server = start(data);
          Store store = new AeronClusterStore(member, options())) {
        assertThat(server.isRunning()).isTrue();
        assertThat(store.add("count", 1)).isEqualTo(1);
      }
    }
  }

  /** Writes until the store is closed, and counts what was confirmed. */
  private static void write(Store store, AtomicInteger confirmed) {
    try {
      while (true) {
        store.set("key" + confirmed.get(), new byte[50_000]);
        confirmed.incrementAndGet();
      }
    } catch (StoreException e) {
      assertThat(confirmed.get()).isNotNegative();
    }
  }

  @Test
  void aMemberWhoseDiskFillsUpSaysSoAndLosesNothingThatItConfirmed() throws Exception {
    Path disk = Files.createDirectory(directory.resolve("disk"));
    try (Tmpfs tmpfs = Tmpfs.mount(disk, "size=40m");
        LogLines lines = new LogLines(AeronClusterServer.class)) {
      Path data = disk.resolve("data");
      Path filler = tmpfs.directory().resolve("filler");
      AtomicInteger confirmed = new AtomicInteger();
      try (AeronClusterServer server = start(data)) {
        Thread writer;
        try (Store store = new AeronClusterStore(member, options())) {
          store.set("key", "value");
          long left = Files.getFileStore(disk).getUsableSpace() - (1 << 20);
          Files.write(filler, new byte[(int) left]);
          writer = Thread.ofPlatform().daemon().start(() -> write(store, confirmed));
          while (server.isRunning()) {
            LockSupport.parkNanos(1_000_000);
          }
        }
        writer.join();
      }
      try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
        assertThat(maps.filter(line -> line.contains(disk.toString()))).isEmpty();
      }
      assertThat(lines.has("disk full: " + data + ": ")).isTrue();
      Files.delete(filler);
      try (AeronClusterServer server = start(data);
          Store store = new AeronClusterStore(member, options())) {
        assertThat(server.isRunning()).isTrue();
        assertThat(store.get("key")).asString(StandardCharsets.UTF_8).isEqualTo("value");
        for (int i = 0; i < confirmed.get(); i++) {
          assertThat(store.get("key" + i)).isEqualTo(new byte[50_000]);
        }
      }
    }
  }
}
