package dev.tutti.aeron.cluster.member;

import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.cluster.RecordingLog;
import java.io.File;
import java.util.List;

/**
 * A purge that deletes what a member of a cluster no longer needs: old snapshots, and the part of
 * the log that is older than the last ones.
 */
final class ClusterPurge {
  private static final RecordingDescriptorConsumer NOTHING =
      (control, call, id, t0, t1, p0, p1, t, s, b, mtu, session, stream, c, o, from) -> {};

  private final File folder;
  private final int kept;

  /**
   * Creates a purge.
   *
   * @param folder the folder in which the member records its snapshots
   * @param kept the number of snapshots to keep
   */
  ClusterPurge(File folder, int kept) {
    this.folder = folder;
    this.kept = kept;
  }

  /**
   * Deletes everything older than the last snapshots; fails if someone is reading it, and can be
   * retried.
   */
  void run(AeronArchive archive) {
    List<RecordingLog.Entry> entries;
    long logRecording;
    try (RecordingLog log = new RecordingLog(folder, false)) {
      entries = log.entries().stream().filter(ClusterPurge::isSnapshot).toList();
      logRecording = log.findLastTermRecordingId();
    }
    long[] positions = entries.stream().mapToLong(e -> e.logPosition).sorted().distinct().toArray();
    if (positions.length <= kept) {
      return;
    }
    long first = positions[positions.length - kept];
    purgeLog(archive, logRecording, first);
    for (RecordingLog.Entry entry : entries) {
      if (entry.logPosition < first && archive.listRecording(entry.recordingId, NOTHING) > 0) {
        archive.purgeRecording(entry.recordingId);
      }
    }
  }

  private static boolean isSnapshot(RecordingLog.Entry entry) {
    return entry.isValid && entry.type == RecordingLog.ENTRY_TYPE_SNAPSHOT;
  }

  private static void purgeLog(AeronArchive archive, long recording, long position) {
    long start = archive.getStartPosition(recording);
    long first =
        AeronArchive.segmentFileBasePosition(
            start, position, ClusterFolder.LOG_TERM_BYTES, ClusterFolder.SEGMENT_BYTES);
    if (first > start) {
      archive.purgeSegments(recording, first);
    }
  }
}
