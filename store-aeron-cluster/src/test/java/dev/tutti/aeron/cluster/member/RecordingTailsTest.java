package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.StoreException;
import dev.tutti.aeron.driver.Channels;
import dev.tutti.aeron.driver.EmbeddedDriver;
import dev.tutti.aeron.wire.SteadyClock;
import dev.tutti.aeron.wire.Timing;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.CatalogView;
import io.aeron.archive.checksum.Checksum;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests how an archive starts again on the files of one that was killed: the files of a running
 * archive are copied, as a kill would leave them.
 */
class RecordingTailsTest {
  private static final Timing TIMING = Timing.of(Timing.DEFAULT_LEASE);
  private static final String IPC = "aeron:ipc?term-length=" + Channels.TERM_BYTES;
  private static final int STREAM = 9;
  private static final int HEADER = 32;
  private static final int PAGE = 4096;

  /** The first fragment ends before the second page, and the second in it. */
  private static final int FIRST = 2016;

  private static final int SECOND = 3008;
  private static final long END = 2 * HEADER + FIRST + SECOND;

  @TempDir private Path directory;

  private EmbeddedDriver driver;
  private Aeron aeron;

  @BeforeEach
  void start() {
    driver = EmbeddedDriver.start(directory, "", TIMING, 8);
    aeron = EmbeddedDriver.connect(driver.path(), TIMING);
  }

  @AfterEach
  void end() {
    aeron.close();
    driver.close();
  }

  private Archive launch(Path folder, @Nullable Checksum checksum) {
    return Archive.launch(
        new Archive.Context()
            .aeronDirectoryName(driver.path())
            .epochClock(SteadyClock.HOST)
            .archiveDir(folder.toFile())
            .controlChannelEnabled(false)
            .localControlChannel(IPC)
            .replicationChannel("aeron:udp?endpoint=127.0.0.1:0")
            .archiveClientContext(
                new AeronArchive.Context().controlResponseChannel("aeron:udp?endpoint=127.0.0.1:0"))
            .recordingEventsEnabled(false)
            .segmentFileLength(ClusterFolder.SEGMENT_BYTES)
            .catalogCapacity(64 * 1024)
            .recordChecksum(checksum)
            .threadingMode(ArchiveThreadingMode.SHARED)
            .errorHandler(problem -> {}));
  }

  /** What is recorded as one fragment. */
  private interface Last {
    long put(ExclusivePublication publication);
  }

  private static Last fragment(int value) {
    byte[] bytes = new byte[SECOND];
    Arrays.fill(bytes, (byte) value);
    return publication -> publication.offer(new UnsafeBuffer(bytes));
  }

  /** Puts once the driver has room for it, which it may not yet have when it connects. */
  private static long put(ExclusivePublication publication, Last last) {
    long end = last.put(publication);
    while (end == Publication.BACK_PRESSURED || end == Publication.ADMIN_ACTION) {
      Thread.onSpinWait();
      end = last.put(publication);
    }
    assertThat(end).isPositive();
    return end;
  }

  /** Records two fragments, and returns a copy of the archive's files while it runs. */
  private Path record(@Nullable Checksum checksum, Last last) throws IOException {
    Path copy = directory.resolve("copy");
    try (Archive archive = launch(directory.resolve("archive"), checksum);
        AeronArchive client =
            AeronArchive.connect(
                new AeronArchive.Context()
                    .aeron(aeron)
                    .controlRequestChannel(archive.context().localControlChannel())
                    .controlResponseChannel(IPC));
        ExclusivePublication publication = aeron.addExclusivePublication(IPC, STREAM)) {
      client.startRecording(IPC, STREAM, SourceLocation.LOCAL);
      while (!publication.isConnected()) {
        Thread.onSpinWait();
      }
      byte[] ones = new byte[FIRST];
      Arrays.fill(ones, (byte) 1);
      assertThat(put(publication, each -> each.offer(new UnsafeBuffer(ones))))
          .isEqualTo(FIRST + HEADER);
      long end = put(publication, last);
      CountersReader counters = aeron.countersReader();
      int counter;
      do {
        counter =
            RecordingPos.findCounterIdBySession(
                counters, publication.sessionId(), archive.context().archiveId());
      } while (counter < 0 || counters.getCounterValue(counter) < end);
      Files.createDirectory(copy);
      try (Stream<Path> files = Files.list(directory.resolve("archive"))) {
        for (Path file : files.filter(path -> !path.toString().contains("mark")).toList()) {
          Files.copy(file, copy.resolve(file.getFileName()));
        }
      }
    }
    return copy;
  }

  /** Starts an archive on the files, and returns where the recording ends. */
  private long stop(Path folder) {
    AtomicLong found = new AtomicLong(Long.MIN_VALUE);
    launch(folder, new RecordingChecksum()).close();
    CatalogView.listRecordings(
        folder.toFile(),
        (c, call, id, t0, t1, start, stop, i, s, b, mtu, session, stream, sc, oc, from) ->
            found.set(stop));
    return found.get();
  }

  /** Removes what comes after the first page, as a write that stopped there does. */
  private static void tear(Path folder) throws IOException {
    try (FileChannel file = FileChannel.open(folder.resolve("0-0.rec"), StandardOpenOption.WRITE)) {
      assertThat(file.write(ByteBuffer.allocate(PAGE), PAGE)).isEqualTo(PAGE);
    }
  }

  @Test
  void aLastFragmentOfZerosIsKept() throws Exception {
    Path copy = record(new RecordingChecksum(), fragment(0));
    RecordingTails.mend(copy);
    assertThat(stop(copy)).isEqualTo(END);
  }

  @Test
  void aTornFragmentIsCutOff() throws Exception {
    Path copy = record(new RecordingChecksum(), fragment(7));
    tear(copy);
    assertThatThrownBy(() -> stop(copy))
        .isInstanceOf(ArchiveException.class)
        .hasMessageContaining("potentially incomplete last fragment");
    Files.delete(copy.resolve("archive-mark.dat"));
    RecordingTails.mend(copy);
    assertThat(Files.size(copy.resolve("0-0.rec"))).isEqualTo(ClusterFolder.SEGMENT_BYTES);
    assertThat(stop(copy)).isEqualTo(FIRST + HEADER);
  }

  @Test
  void paddingAtTheEndIsKept() throws Exception {
    Path copy = record(new RecordingChecksum(), publication -> publication.appendPadding(2 * PAGE));
    RecordingTails.mend(copy);
    assertThat(stop(copy)).isEqualTo(FIRST + 2 * HEADER + 2 * PAGE);
  }

  @Test
  void aFragmentWithoutChecksumIsKeptIfItCannotBeTorn() throws Exception {
    Path copy = record(null, fragment(7));
    RecordingTails.mend(copy);
    assertThat(stop(copy)).isEqualTo(END);
  }

  @Test
  void aFragmentWithoutChecksumThatMayBeTornIsNeverCutOff() throws Exception {
    Path copy = record(null, fragment(0));
    byte[] before = Files.readAllBytes(copy.resolve("0-0.rec"));
    assertThatThrownBy(() -> RecordingTails.mend(copy))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("the end of " + copy.resolve("0-0.rec") + " may be torn")
        .hasMessageContaining("copy the folders archive and cluster of a member that starts");
    assertThat(Files.readAllBytes(copy.resolve("0-0.rec"))).isEqualTo(before);
  }
}
