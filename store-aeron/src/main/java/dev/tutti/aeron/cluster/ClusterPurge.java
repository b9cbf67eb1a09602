package dev.tutti.aeron.cluster;

import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.cluster.RecordingLog;
import java.io.File;
import java.util.List;

/**
 * Deletes what a member of a cluster needs no more: old snapshots, and the log that is older than
 * the last ones.
 */
final class ClusterPurge {
  private static final RecordingDescriptorConsumer NOTHING =
      (control, call, id, t0, t1, p0, p1, t, s, b, mtu, session, stream, c, o, from) -> {};

  private final File folder;
  private final int kept;

  /**
   * Creates one.
   *
   * @param folder where the member notes its snapshots
   * @param kept how many are kept
   */
  ClusterPurge(File folder, int kept) {
    this.folder = folder;
    this.kept = kept;
  }

  /**
   * Deletes what is older than the last snapshots; fails if somebody reads it, and can be tried
   * again.
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
            start, position, ClusterNode.LOG_TERM_BYTES, ClusterNode.SEGMENT_BYTES);
    if (first > start) {
      archive.purgeSegments(recording, first);
    }
  }
}
