package dev.tutti.store.file;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.spi.Time;
import dev.tutti.store.ManualTime;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests what a store file contains, and how a store handles the files it finds. */
class FileStoreFileTest {
  /** How a refusal gives the age of a file that was made 130 s old, perhaps a while ago. */
  private static final String AT_LEAST_130_S =
      "it was last changed (1[3-9]\\d|[2-9]\\d\\d|\\d{4,}) s";

  private static final Duration TIMEOUT = Duration.ofMinutes(2);

  /** How long a close waits for a locked file. */
  @TempDir private Path directory;

  private Path file;

  @BeforeEach
  void nameFile() {
    file = directory.resolve("store");
  }

  private FileStore open(int worldSize) {
    return new FileStore(file, worldSize, TIMEOUT);
  }

  /** Builds a record as PyTorch writes it. */
  private static byte[] record(String key, String value) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (String field : List.of(key, value)) {
      byte[] bytes = field.getBytes(UTF_8);
      out.writeBytes(new byte[] {(byte) bytes.length, (byte) (bytes.length >> 8), 0, 0});
      out.writeBytes(bytes);
    }
    return out.toByteArray();
  }

  private static byte[] records(String... keysAndValues) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int i = 0; i < keysAndValues.length; i += 2) {
      out.writeBytes(record(keysAndValues[i], keysAndValues[i + 1]));
    }
    return out.toByteArray();
  }

  private void write(byte[] bytes) throws IOException {
    Files.write(file, bytes, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  }

  private byte[] newBytes(long from) throws IOException {
    byte[] all = Files.readAllBytes(file);
    return Arrays.copyOfRange(all, (int) from, all.length);
  }

  @Test
  void writesTheRecordsThatPyTorchWrites() throws IOException {
    try (FileStore store = open(2)) {
      assertThat(Files.readAllBytes(file)).startsWith(record("refcount/", "1"));
      long start = Files.size(file);
      store.set("k", "val");
      store.add("n", 5);
      store.add("n", 0);
      store.compareSet("k", "val".getBytes(UTF_8), "new".getBytes(UTF_8));
      store.compareSet("k", "val".getBytes(UTF_8), "new2".getBytes(UTF_8));
      store.compareSet("x", "val".getBytes(UTF_8), "new".getBytes(UTF_8));
      store.compareSet("y", null, "new".getBytes(UTF_8));
      store.deleteKey("n");
      store.append("k", "!".getBytes(UTF_8));
      store.set("ä", "");
      assertThat(newBytes(start))
          .isEqualTo(
              records(
                  "/k", "val", "/n", "5", "/n", "5", "/k", "new", "/y", "new", "-/n", "", "/k",
                  "new!", "/ä", ""));
      start = Files.size(file);
      FileStore second = open(2);
      assertThat(newBytes(start)).startsWith(record("refcount/", "2"));
      start = Files.size(file);
      second.close();
      assertThat(newBytes(start)).startsWith(records("cleanup/", "1", "refcount/", "1"));
    }
    assertThat(file).doesNotExist();
  }

  @Test
  void readsTheRecordsThatPyTorchWrites() throws IOException {
    write(records("refcount/", "1", "/k", "old", "/k", "val", "/n", "41", "/d", "1", "-/d", ""));
    try (FileStore store = open(2)) {
      assertThat(store.get("k")).asString(UTF_8).isEqualTo("val");
      assertThat(store.add("n", 1)).isEqualTo(42);
      assertThat(store.listKeys()).containsExactly("k", "n");
      assertThat(store.keyCount()).isEqualTo(2);
      write(records("/late", "1", "-/k", ""));
      assertThat(store.get("late")).asString(UTF_8).isEqualTo("1");
      assertThat(store.check(List.of("k"))).isFalse();
      assertThat(newBytes(0)).containsSubsequence(record("refcount/", "2"));
    }
    // The other store still uses it.
    assertThat(file).exists();
  }

  @Test
  void isDeletedWhenAllRanksHaveClosedIt() {
    FileStore first = open(2);
    first.duplicate().close();
    first.close();
    assertThat(file).exists();
    FileStore second = open(2);
    FileStore copy = second.duplicate();
    second.close();
    copy.set("key", "value");
    assertThat(file).exists();
    copy.close();
    copy.close();
    assertThat(file).doesNotExist();
  }

  @Test
  void isNeverDeletedWhereTheWorldSizeIsUnknown() {
    open(0).close();
    assertThat(file).exists();
  }

  @Test
  void refusesAFileThatAllHaveClosed() throws IOException {
    try (FileStore store = open(0)) {
      store.set("key", "value");
    }
    assertStale(0, "all processes that had it open have closed it");
    assertStale(1, "all processes that had it open have closed it");
    Files.delete(file);
    try (FileStore store = open(1)) {
      assertThat(store.keyCount()).isZero();
    }
  }

  @Test
  void takesAFileThatSomeRanksOfTheWorldHaveFinished() {
    FileStore first = open(3);
    first.set("key", "value");
    first.close();
    try (FileStore second = open(3)) {
      assertThat(second.get("key")).asString(UTF_8).isEqualTo("value");
    }
  }

  @Test
  void refusesAFileWhoseProcessIsDead() throws Exception {
    Process dead = new ProcessBuilder("true").start();
    assertThat(dead.waitFor(4, TimeUnit.MINUTES)).isTrue();
    FileMembers.Member member =
        new FileMembers.Member(FileMembers.Member.hostOfThisProcess(Time.SYSTEM), dead.pid(), 0);
    write(records("refcount/", "1", "tutti/member/1", member.toString(), "/key", "value"));
    assertStale(2, "process " + dead.pid() + " on this host had it open and has died");
  }

  @Test
  void refusesAFileWhoseProcessIdBelongsToAnotherProcessNow() throws IOException {
    FileMembers.Member self = FileMembers.Member.ofThisProcess(Time.SYSTEM);
    FileMembers.Member former =
        new FileMembers.Member(self.host(), self.pid(), self.started() - 60_000);
    write(records("refcount/", "1", "tutti/member/1", former.toString()));
    assertStale(2, "has died");
  }

  @Test
  void aProcessIsKnownByATimeThatSettingTheClockDoesNotMove() throws IOException {
    String stat = Files.readString(Path.of("/proc/self/stat"));
    String[] words = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
    FileMembers.Member self = FileMembers.Member.ofThisProcess(Time.SYSTEM);
    assertThat(self.started()).isEqualTo(Long.parseLong(words[19]));
    assertThat(self.isAlive()).isTrue();
  }

  @Test
  void takesAFileOfALivingProcessHoweverOldItIs() throws IOException {
    write(
        records(
            "refcount/",
            "1",
            "tutti/member/1",
            FileMembers.Member.ofThisProcess(Time.SYSTEM).toString()));
    age(Duration.ofDays(2));
    open(2).close();
    assertThat(file).exists();
  }

  @Test
  void takesAFileOfPyTorchOnlyWhileItIsFresh() throws IOException {
    write(records("refcount/", "1", "/key", "value"));
    age(Duration.ofSeconds(40));
    try (FileStore store = open(2)) {
      assertThat(store.get("key")).asString(UTF_8).isEqualTo("value");
    }
    Files.delete(file);
    write(records("refcount/", "1", "/key", "value"));
    age(Duration.ofSeconds(130));
    assertStale(2, AT_LEAST_130_S + " ago, longer than the 120 s");
  }

  @Test
  void takesAFileOfAnotherHostOnlyWhileItIsFresh() throws IOException {
    write(records("refcount/", "1", "tutti/member/1", "elsewhere 1 0"));
    open(2).close();
    Files.delete(file);
    write(records("refcount/", "1", "tutti/member/1", "elsewhere 1 0"));
    age(Duration.ofSeconds(130));
    assertStale(2, AT_LEAST_130_S + " ago");
  }

  private void age(Duration age) throws IOException {
    Files.setLastModifiedTime(file, FileTime.from(Instant.now().minus(age)));
  }

  private void assertStale(int worldSize, String why) throws IOException {
    byte[] before = Files.readAllBytes(file);
    assertThatThrownBy(() -> open(worldSize))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("store file " + file + " is left over from an earlier run")
        .hasMessageContaining("delete it")
        .message()
        .containsPattern(why);
    assertThat(Files.readAllBytes(file)).as("a refused file is left alone").isEqualTo(before);
  }

  @Test
  void cutsOffARecordWhoseWriterDied() throws IOException {
    byte[] first = record("refcount/", "1");
    byte[] whole = records("refcount/", "1", "/key", "value");
    for (int length = 1; length < whole.length; length++) {
      Files.write(file, Arrays.copyOf(whole, length));
      String opened = length < first.length ? "1" : "2";
      try (FileStore store = open(2)) {
        assertThat(store.check(List.of("key"))).as("cut after %d bytes", length).isFalse();
        store.set("key", "new");
        assertThat(newBytes(0))
            .as("cut after %d bytes", length)
            .startsWith(first)
            .containsSubsequence(record("refcount/", opened))
            .endsWith(record("/key", "new"));
      }
      Files.delete(file);
    }
  }

  @Test
  void leavesAFileAloneThatOnlyLooksLikeACutOne() throws IOException {
    byte[] other = Arrays.copyOf(records("/key", "value", "/key", "value"), 20);
    Files.write(file, other);
    assertThatThrownBy(() -> open(2))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(
            "store file "
                + file
                + " is damaged in the record at byte 17: the length of its key is truncated");
    assertThat(Files.readAllBytes(file)).isEqualTo(other);
  }

  @Test
  void refusesAFileThatIsNone() throws IOException {
    Files.writeString(file, "this is the work of somebody's life", ISO_8859_1);
    assertThatThrownBy(() -> open(2))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("damaged in the record at byte 0");
    assertThat(file).hasContent("this is the work of somebody's life");
  }

  @Test
  void noticesDamageLater() throws IOException {
    try (FileStore store = open(2)) {
      write(new byte[8]);
      assertThatThrownBy(() -> store.get("key", TIMEOUT))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("damaged");
      assertThatThrownBy(() -> store.set("key", "value")).hasMessageContaining("damaged");
    }
  }

  @Test
  void cutsOffARecordWhoseWriterDiesLater() throws IOException {
    try (FileStore store = open(2)) {
      store.set("key", "value");
      long whole = Files.size(file);
      write(new byte[] {9, 0});
      assertThat(store.get("key", TIMEOUT)).asString(UTF_8).isEqualTo("value");
      assertThat(Files.size(file)).isEqualTo(whole);
      write(Arrays.copyOf(record("/key", "a longer value"), 15));
      store.set("other", "value");
      assertThat(newBytes(whole)).isEqualTo(record("/other", "value"));
    }
  }

  @Test
  void createsAFileThatOnlyItsOwnerCanOpenAndKeepsTheModeOfOthers() throws Exception {
    assumeTrue(
        file.getFileSystem().supportedFileAttributeViews().contains("posix"),
        "needs permissions of files");
    Set<PosixFilePermission> own = PosixFilePermissions.fromString("rw-------");
    try (FileStore _ = open(2)) {
      assertThat(Files.getPosixFilePermissions(file)).isEqualTo(own);
    }
    Files.delete(file);
    Process child = FileStoreChild.start("--illegal-native-access=deny", file, 2, -1, 1);
    try {
      assertThat(child.inputReader().readLine()).isEqualTo("waiting");
      assertThat(Files.getPosixFilePermissions(file)).isEqualTo(own);
    } finally {
      child.destroyForcibly();
      assertThat(child.waitFor(4, TimeUnit.MINUTES)).isTrue();
    }
    Set<PosixFilePermission> shared = PosixFilePermissions.fromString("rw-rw-r--");
    Files.delete(file);
    Files.createFile(file);
    Files.setPosixFilePermissions(file, shared);
    try (FileStore _ = open(2)) {
      assertThat(Files.getPosixFilePermissions(file)).isEqualTo(shared);
    }
  }

  @Test
  void writesNothingWhereALinkRefersTo() throws Exception {
    Path target = directory.resolve("target");
    Files.createSymbolicLink(file, target);
    for (boolean exists : new boolean[] {false, true}) {
      if (exists) {
        Files.createFile(target);
      }
      assertThatThrownBy(() -> open(2))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("is a link, and a store file must not be");
      Process child = FileStoreChild.start("--illegal-native-access=deny", file, 2, -1, 1);
      assertThat(child.inputReader().readLine()).isNull();
      assertThat(child.waitFor()).isZero();
      assertThat(FileStoreChild.errors(file))
          .content()
          .contains("is a link, and a store file must not be");
      Files.delete(FileStoreChild.errors(file));
      assertThat(Files.exists(target)).isEqualTo(exists);
    }
    assertThat(target).isEmptyFile();
  }

  @Test
  void noticesThatTheFileIsGoneOrAnother() throws IOException {
    try (FileStore store = open(2)) {
      store.set("key", "value");
      Files.delete(file);
      assertThatThrownBy(() -> store.get("other", TIMEOUT))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("is gone");
      assertThatThrownBy(() -> store.set("key", "value")).hasMessageContaining("is gone");
      assertThat(file).doesNotExist();
      write(records("refcount/", "1"));
      assertThatThrownBy(() -> store.set("key", "value")).hasMessageContaining("was replaced");
      assertThat(Files.readAllBytes(file)).isEqualTo(record("refcount/", "1"));
    }
  }

  @Test
  void saysWhyAFileCannotBeHad() {
    assertThatThrownBy(() -> new FileStore(directory.resolve("no/such/store"), 1))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("no/such/store");
    assertThatThrownBy(() -> new FileStore(directory, 1))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("directory");
    assertThatThrownBy(() -> new FileStore(file, -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-1");
  }

  @Test
  void givesUpWhenOthersKeepTheFileLocked() throws Exception {
    try (FileStore store = new FileStore(file, 2, Duration.ofMillis(1200))) {
      Process holder = lockWhile("read line");
      try {
        long start = System.nanoTime();
        assertThatThrownBy(() -> store.set("key", "value"))
            .isInstanceOf(StoreSilentException.class)
            .hasMessageContaining("other processes hold the lock of file " + file);
        assertThat(Duration.ofNanos(System.nanoTime() - start))
            .isGreaterThanOrEqualTo(Duration.ofMillis(1200));
      } finally {
        // Killed, it would leave a shell that holds the lock for a moment.
        holder.outputWriter().close();
        assertThat(holder.waitFor(4, TimeUnit.MINUTES)).isTrue();
      }
      store.set("key", "value");
      assertThat(store.get("key")).asString(UTF_8).isEqualTo("value");
    }
  }

  @Test
  void aPopAndACloseWaitForAFileThatIsLockedForLongerThanASecond() throws Exception {
    ManualTime time = new ManualTime();
    FileStore store = new FileStore(file, 1, Duration.ofSeconds(60), time);
    store.queuePush("queue", new byte[] {7});
    AtomicReference<byte[]> popped = new AtomicReference<>();
    endsOnceUnlocked(time, () -> popped.set(store.queuePop("queue", Duration.ofSeconds(60))));
    assertThat(popped.get()).containsExactly(7);
    endsOnceUnlocked(time, store::close);
    assertThat(file).doesNotExist();
  }

  /** Makes a call while the file is locked, and unlocks it after more than a second. */
  private void endsOnceUnlocked(ManualTime time, Runnable call) throws Exception {
    Process holder = lockWhile("read line");
    try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
      Future<?> ends = thread.submit(call);
      time.skipUnnoticed(Duration.ofMillis(1300));
      assertThat(ends).isNotDone();
      holder.outputWriter().close();
      ends.get();
    } finally {
      holder.destroyForcibly().waitFor();
    }
  }

  /** Starts a process that keeps the file locked while a shell command runs. */
  private Process lockWhile(String command) throws IOException {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/flock")), "needs util-linux's flock command");
    Process holder =
        new ProcessBuilder("flock", file.toString(), "sh", "-c", "echo locked; " + command)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertThat(holder.inputReader().readLine()).isEqualTo("locked");
    return holder;
  }

  @Test
  void anInterruptNeverCutsARecord() throws Exception {
    try (FileStore store = open(2)) {
      Thread writer =
          new Thread(
              () -> {
                for (int i = 0; i < 300; i++) {
                  store.append("key", new byte[] {1, 2, 3});
                }
              });
      writer.start();
      while (writer.isAlive()) {
        writer.interrupt();
        Thread.onSpinWait();
      }
      writer.join();
      assertThat(store.get("key")).hasSize(900);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "--enable-native-access=ALL-UNNAMED, 3, 1",
    "--illegal-native-access=deny, 3, 1",
    "--enable-native-access=ALL-UNNAMED, 2, 2",
    "--illegal-native-access=deny, 2, 2",
    "--enable-native-access=ALL-UNNAMED --illegal-native-access=deny, 4, 1"
  })
  void processesShareAFile(String nativeAccess, int processes, int threads) throws Exception {
    int ranks = processes * threads;
    int sum = ranks * 150;
    String[] accesses = nativeAccess.split(" ", -1);
    List<Process> children = new ArrayList<>();
    try {
      for (int i = 0; i < processes; i++) {
        String access = accesses[i % accesses.length];
        children.add(FileStoreChild.start(access, file, ranks, 150, threads));
      }
      for (Process child : children) {
        assertThat(child.waitFor(4, TimeUnit.MINUTES)).isTrue();
        assertThat(child.inputReader().lines())
            .hasSize(threads)
            .containsOnly("count %d, log %d, queue %d, last value 149".formatted(sum, sum, sum));
        assertThat(child.exitValue()).isZero();
      }
    } finally {
      children.forEach(Process::destroyForcibly);
    }
    assertThat(file).doesNotExist();
  }

  @Test
  void aKilledRankLeavesAFileThatTheNextRunRefuses() throws Exception {
    Process child = FileStoreChild.start("--enable-native-access=ALL-UNNAMED", file, 2, -1, 1);
    try {
      assertThat(child.inputReader().readLine()).isEqualTo("waiting");
      try (FileStore store = open(2)) {
        store.set("key", "value");
      }
      child.destroyForcibly();
      assertThat(child.waitFor(4, TimeUnit.MINUTES)).isTrue();
    } finally {
      child.destroyForcibly();
    }
    assertStale(2, "process " + child.pid() + " on this host had it open and has died");
  }
}
