package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import io.aeron.Aeron;
import io.aeron.archive.CatalogView;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.agrona.BitUtil;
import org.jspecify.annotations.Nullable;

/**
 * The ends of the recordings that a member was writing when it was killed, made whole before its
 * archive starts.
 */
final class RecordingTails {
  /*
   * A kill, or a full disk, stops a write between two pages, so the last fragment may have its head
   * and lack the rest, which then reads as zeros. Aeron does not start on a last fragment that
   * crosses a page and has neither a right checksum nor something but zeros in all later pages.
   *
   *   checksum right           the fragment is whole, whatever it holds
   *   padding                  has no content, and Aeron gives it no checksum: it gets one here
   *   checksum wrong           the fragment is torn, and is cut off. The member has never confirmed
   *                            it, since it does so only after the write
   *   no checksum, zero page   recorded by a version that had none, which left the number of the
   *                            session in its place. Nobody can say what it is, so the member does
   *                            not start
   */
  private static final Logger LOG = System.getLogger(ClusterLogs.SERVER);
  private static final String CATALOG = "archive.catalog";
  private static final String SUFFIX = ".rec";
  private static final int PAGE = 4096;

  private final Path archive;
  private final RecordingChecksum checksum = new RecordingChecksum();

  private RecordingTails(Path archive) {
    this.archive = archive;
  }

  /**
   * Mends the recordings in the folder of an archive that does not run.
   *
   * @throws StoreException if a recording ends in a fragment of which nobody can say whether it is
   *     whole
   */
  static void mend(Path archive) throws IOException {
    if (!Files.exists(archive.resolve(CATALOG))) {
      return;
    }
    RecordingTails tails = new RecordingTails(archive);
    try {
      CatalogView.listRecordings(
          archive.toFile(),
          (control,
              call,
              id,
              t0,
              t1,
              start,
              stop,
              term,
              segment,
              terms,
              m,
              session,
              s,
              c,
              o,
              from) -> {
            if (stop == Aeron.NULL_VALUE) {
              tails.mend(id, start, terms, segment, session);
            }
          });
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  private void mend(long recording, long start, int termBytes, int segmentBytes, int session) {
    try {
      Path file = lastSegment(recording + "-");
      if (file == null) {
        return;
      }
      long base = position(file);
      int startInTerm = (int) (start & (termBytes - 1));
      int first = base == start - startInTerm ? startInTerm : 0;
      mend(file, first, segmentBytes, session);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private @Nullable Path lastSegment(String prefix) throws IOException {
    Path last = null;
    try (DirectoryStream<Path> all = Files.newDirectoryStream(archive, prefix + "*" + SUFFIX)) {
      for (Path file : all) {
        if (last == null || position(file) > position(last)) {
          last = file;
        }
      }
    }
    return last;
  }

  private static long position(Path file) {
    String name = file.getFileName().toString();
    return Long.parseLong(name.substring(name.indexOf('-') + 1, name.length() - SUFFIX.length()));
  }

  private void mend(Path file, int first, int segmentBytes, int session) throws IOException {
    byte[] bytes = Arrays.copyOf(Files.readAllBytes(file), segmentBytes);
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int last = first;
    int end = first;
    while (end < segmentBytes && buffer.getInt(FrameDescriptor.lengthOffset(end)) > 0) {
      last = end;
      end +=
          BitUtil.align(
              buffer.getInt(FrameDescriptor.lengthOffset(end)), FrameDescriptor.FRAME_ALIGNMENT);
    }
    if (last == end || last / PAGE == (end - 1) / PAGE) {
      return;
    }
    int content = last + DataHeaderFlyweight.HEADER_LENGTH;
    int whole = end > segmentBytes ? 0 : checksum.compute(bytes, content, end - content);
    int sessionAt = last + DataHeaderFlyweight.SESSION_ID_FIELD_OFFSET;
    int recorded = buffer.getInt(sessionAt);
    if (recorded == whole) {
      return;
    }
    if (buffer.getShort(FrameDescriptor.typeOffset(last)) == FrameDescriptor.PADDING_FRAME_TYPE) {
      buffer.putInt(sessionAt, whole);
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
        channel.write(ByteBuffer.wrap(bytes, sessionAt, Integer.BYTES), sessionAt);
      }
    } else if (recorded != session) {
      cut(file, last, segmentBytes);
    } else if (hasZeroPage(bytes, last, end)) {
      throw new StoreException(
          ("the end of %s may be torn, and was recorded by a version without checksums; copy the"
                  + " folders archive and cluster of a member that starts over those of this one")
              .formatted(file));
    }
  }

  private static boolean hasZeroPage(byte[] bytes, int last, int end) {
    byte[] zeros = new byte[PAGE];
    for (int page = (last / PAGE + 1) * PAGE; page < end; page += PAGE) {
      int pageEnd = Math.min(end, page + PAGE);
      if (Arrays.equals(bytes, page, pageEnd, zeros, 0, pageEnd - page)) {
        return true;
      }
    }
    return false;
  }

  private static void cut(Path file, int at, int segmentBytes) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate(at);
      channel.write(ByteBuffer.allocate(1), segmentBytes - 1); // Aeron requires its full length
    }
    LOG.log(
        Level.WARNING,
        "cut the end of {0} at {1}: it was torn when the member ended, which had not confirmed it",
        file,
        at);
  }
}
