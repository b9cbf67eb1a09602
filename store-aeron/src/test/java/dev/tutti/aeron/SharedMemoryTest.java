package dev.tutti.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreConnectionException;
import dev.tutti.StoreException;
import dev.tutti.aeron.driver.DriverDirectory;
import dev.tutti.contracts.Sampled;
import dev.tutti.shared.Until;
import dev.tutti.store.JobToken;
import dev.tutti.testkit.Tmpfs;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the store uses on a machine: space in shared memory, files, JVM flags. */
@Timeout(300)
class SharedMemoryTest {
  private static final int SECONDS = 100;

  @TempDir private Path directory;

  private AeronStoreOptions options() {
    return AeronStoreOptions.of("127.0.0.1", 0)
        .withDirectory(directory)
        .withToken(JobToken.NONE)
        .withServer(true);
  }

  private static String run(String... command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (!process.waitFor(SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw new IOException(List.of(command) + ": " + output.strip());
    }
    return output;
  }

  private void inMemoryOf(String size, Body body) throws Exception {
    Tmpfs tmpfs = Tmpfs.mount(directory, "size=" + size);
    try (tmpfs) {
      body.run();
    }
  }

  private interface Body {
    void run() throws Exception;
  }

  @Test
  void tooLittleRoomIsNamedWithItsRemedies() throws Exception {
    inMemoryOf(
        "8m",
        () -> {
          assertThatThrownBy(() -> new AeronStore(options()))
              .isInstanceOf(StoreException.class)
              .hasMessageContaining(directory + " has 8.0 MiB left")
              .hasMessageContaining("needs up to 15.9 MiB")
              .hasMessageContaining("--shm-size")
              .hasMessageContaining("emptyDir")
              .hasMessageContaining("TUTTI_AERON_DIR")
              .hasMessageContaining("TUTTI_STORE=tcp");
          assertThat(directory).isEmptyDirectory();
        });
  }

  @Test
  void aStoreFitsIntoItsBudget() throws Exception {
    inMemoryOf(
        "16m",
        () -> {
          try (AeronStore store = new AeronStore(options())) {
            byte[] value = new byte[1 << 20];
            store.set("key", value);
            assertThat(store.get("key")).isEqualTo(value);
            long kilobytes = kilobytes();
            assertThat(kilobytes)
                .isLessThanOrEqualTo(
                    (DriverDirectory.DRIVER_BYTES + DriverDirectory.SESSION_BYTES) >> 10);
          }
          assertThat(directory).isEmptyDirectory();
        });
  }

  private long kilobytes() throws Exception {
    return Long.parseLong(run("du", "-sk", directory.toString()).split("\t", 2)[0]);
  }

  @Sampled
  @ParameterizedTest
  @CsvSource({"32m, 16", "64m, 64", "96m, 200"})
  void clientsOfAContainerFit(String size, int clients) throws Exception {
    inMemoryOf(
        size,
        () -> {
          try (AeronStoreServer server = new AeronStoreServer(options(), null, clients);
              Sessions sessions = new Sessions(options().withPort(server.port()), clients)) {
            for (AeronStore store : sessions.all) {
              assertThat(store.isShared()).isTrue();
              store.add("count", 1);
            }
            assertThat(sessions.all.get(0).add("count", 0)).isEqualTo(clients);
            assertThat(kilobytes())
                .isLessThanOrEqualTo(
                    (DriverDirectory.DRIVER_BYTES + clients * DriverDirectory.SESSION_BYTES) >> 10);
          }
          assertThat(directory).isEmptyDirectory();
        });
  }

  @Test
  void whenMemoryIsFullNewClientsAreRefusedAndOthersGoOn() throws Exception {
    inMemoryOf(
        "16m",
        () -> {
          Path filler = directory.resolve("filler");
          try (AeronStore store = new AeronStore(options())) {
            try {
              Files.write(filler, new byte[16 << 20]);
            } catch (IOException e) {
              assertThat(e).hasMessageContaining("No space left");
            }
            byte[] value = new byte[1 << 20];
            store.set("key", value);
            assertThat(store.get("key")).isEqualTo(value);
            AeronStoreOptions other =
                options().withServer(false).withPort(store.port()).withLease(Sessions.lease(1));
            assertThatThrownBy(() -> new AeronStore(other))
                .isInstanceOf(StoreConnectionException.class)
                .hasMessageContaining("cannot serve this process: " + directory + " has 0.0 MiB")
                .hasMessageContaining("--shm-size");
            Files.delete(filler);
            awaitRoom();
            try (AeronStore second = new AeronStore(other)) {
              assertThat(second.check(List.of("key"))).isTrue();
            }
          } finally {
            Files.deleteIfExists(filler);
          }
          assertThat(directory).isEmptyDirectory();
        });
  }

  /** Waits until there is room for a session: see {@link Tmpfs#close}. */
  private void awaitRoom() throws IOException {
    Until.holds(
        () -> Files.getFileStore(directory).getUsableSpace() >= DriverDirectory.SESSION_BYTES);
  }

  /** Clients in this process that share nothing, as if each were in its own process. */
  private static final class Sessions implements AutoCloseable {
    final List<AeronStore> all = new ArrayList<>();

    Sessions(AeronStoreOptions options, int count) {
      for (int i = 0; i < count; i++) {
        all.add(new AeronStore(options.withServer(false).withLease(lease(i))));
      }
    }

    /** Returns a unique lease: stores with different leases use different sessions. */
    static Duration lease(int number) {
      return Duration.ofSeconds(5).plusMillis(number);
    }

    @Override
    public void close() {
      all.forEach(AeronStore::close);
    }
  }

  @Test
  void aFolderThatIsNoneIsNamed() throws IOException {
    Path file = Files.createFile(directory.resolve("file"));
    assertThatThrownBy(() -> new AeronStore(options().withDirectory(file)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cannot create a folder for shared memory in " + file)
        .hasMessageContaining("TUTTI_AERON_DIR");
  }

  @Test
  void onlyItsUserMayOpenTheFolder() throws IOException {
    try (AeronStore store = new AeronStore(options())) {
      Path folder = Path.of(store.driver()).getParent();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)))
          .isEqualTo("rwx------");
    }
  }

  @Test
  void whatAnEndedProcessLeftIsDeletedAndNothingElse() throws Exception {
    Path stale = Files.createDirectory(directory.resolve("tutti-aeron-999999999-00000000"));
    Files.createFile(stale.resolve("lock"));
    Files.createFile(Files.createDirectory(stale.resolve("driver")).resolve("cnc.dat"));
    Path other = Files.createDirectory(directory.resolve("tutti-aeron-999999998-00000000"));
    try (StoreChild server = StoreChild.start("serve", 0, "TUTTI_AERON_DIR=" + directory)) {
      assertThat(server.line()).startsWith("READY");
      new AeronStore(options()).close();
      try (Stream<Path> left = Files.list(directory)) {
        assertThat(left).hasSize(2).contains(other);
      }
    }
  }

  @Test
  void whatAProcessOfTheSameNumberLeftIsDeleted() throws Exception {
    String name = "tutti-aeron-" + ProcessHandle.current().pid() + "-deadbeef";
    Path stale = Files.createDirectory(directory.resolve(name));
    Files.createFile(stale.resolve("lock"));
    try (AeronStore store = new AeronStore(options())) {
      assertThat(stale).doesNotExist();
      try (AeronStore second = new AeronStore(options())) {
        assertThat(directory.toFile().list()).hasSize(2);
        assertThat(second.driver()).isNotEqualTo(store.driver());
      }
    }
    assertThat(directory).isEmptyDirectory();
  }

  /** A loader that loads the store's classes once more. */
  private static final class SecondLoader extends URLClassLoader {
    SecondLoader() {
      super(
          new URL[] {DriverDirectory.class.getProtectionDomain().getCodeSource().getLocation()},
          SecondLoader.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!name.startsWith("dev.tutti.aeron.")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        return loaded == null ? findClass(name) : loaded;
      }
    }
  }

  @Test
  void aSecondCopyOfTheStoreInAProcessLeavesTheFoldersOfTheFirst() throws Exception {
    try (SecondLoader loader = new SecondLoader()) {
      Class<?> type = loader.loadClass(DriverDirectory.class.getName());
      assertThat(type).isNotSameAs(DriverDirectory.class);
      Method create = type.getDeclaredMethod("create", Path.class, long.class);
      create.setAccessible(true);
      try (AutoCloseable first = (AutoCloseable) create.invoke(null, directory, 0L)) {
        String[] names = directory.toFile().list();
        DriverDirectory.create(directory, 0).close();
        try (StoreChild server = StoreChild.start("serve", 0, "TUTTI_AERON_DIR=" + directory)) {
          assertThat(server.line()).startsWith("READY");
          assertThat(directory.toFile().list()).hasSize(2).contains(names);
        }
        assertThat(first).isNotNull();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void aFolderThatCannotBeFilledIsDeleted(int files) throws Exception {
    inMemoryOf(
        "64m,nr_inodes=" + files,
        () -> {
          assertThatThrownBy(() -> DriverDirectory.create(directory, 0))
              .isInstanceOf(StoreException.class)
              .hasMessageContaining("cannot create a folder for shared memory in " + directory);
          assertThat(directory).isEmptyDirectory();
        });
  }

  @Test
  void theMissingFlagIsNamed() throws Exception {
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.add(WithoutFlag.class.getName());
    assertThat(run(command.toArray(String[]::new)))
        .contains("--add-exports java.base/jdk.internal.misc=ALL-UNNAMED")
        .contains("TUTTI_STORE=tcp");
  }

  /** A program that tries to open a store. */
  static final class WithoutFlag {
    private WithoutFlag() {}

    public static void main(String[] args) {
      try (AeronStore store = new AeronStore("127.0.0.1", 1)) {
        System.out.println(store);
      } catch (StoreException e) {
        System.out.println(e.getMessage());
      }
    }
  }
}
