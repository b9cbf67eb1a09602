package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.wire.SteadyClock;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import io.aeron.cluster.ConsensusModule;
import io.aeron.exceptions.AeronException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.errors.DistinctErrorLog;
import org.agrona.concurrent.errors.ErrorLogReader;

/**
 * The log of a member: errors of its parts and refused sessions, both of which strangers can cause.
 */
final class MemberLog {
  private static final Logger LOG = System.getLogger(ClusterLogs.SERVER);
  private static final int BYTES = 64 << 10;

  private final String member;
  private final int sessions;
  private final Supplier<String> fullness;
  private final LimitedLog log = new LimitedLog(LOG, Time.SYSTEM);
  private int refused;

  /**
   * What the consensus module records. Its own memory for that is a file, which is unmapped when
   * the module ends.
   */
  private final DistinctErrorLog recorded =
      new DistinctErrorLog(
          new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES)),
          SteadyClock.PROCESS,
          StandardCharsets.US_ASCII);

  /**
   * Creates a log.
   *
   * @param member the name of the member
   * @param sessions how many sessions the member allows
   * @param fullness says that the member's disk is full, or nothing
   */
  MemberLog(String member, int sessions, Supplier<String> fullness) {
    this.member = member;
    this.sessions = sessions;
    this.fullness = fullness;
  }

  /** Returns where the consensus module records errors and refused sessions. */
  DistinctErrorLog recorded() {
    return recorded;
  }

  /** Returns the handler of the errors of a part. */
  ErrorHandler errors(String part) {
    return problem -> {
      String full = fullness.get();
      boolean usual =
          full.isEmpty()
              && problem instanceof AeronException e
              && e.category() == AeronException.Category.WARN;
      String line = "%s, %s: %s%s".formatted(member, part, full, problem);
      LOG.log(problem instanceof Error ? Level.WARNING : Level.DEBUG, line, problem);
      if (!usual && !(problem instanceof Error)) {
        log.warn(part, "", line);
      }
    };
  }

  /** Logs what has been recorded since the last call; called by one thread, every second or so. */
  void look() {
    AtomicInteger all = new AtomicInteger();
    ErrorLogReader.read(
        recorded.buffer(),
        (count, first, last, text) -> {
          if (text.contains(ConsensusModule.Configuration.SESSION_LIMIT_MSG)) {
            all.addAndGet(count);
          }
        });
    if (all.get() > refused) {
      log.warn(
          "sessions",
          "",
          "%s refused %d sessions: it has as many as it allows (%d)"
              .formatted(member, all.get() - refused, sessions));
      refused = all.get();
    }
    log.tick();
  }
}
