package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import io.aeron.security.Authenticator;
import io.aeron.security.SessionProxy;
import java.io.IOException;
import java.lang.System.Logger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The admission of clients that have the token, if there is room; the leader's side of {@link
 * ClusterHello}.
 */
final class ClusterAdmission implements Authenticator {
  private static final Logger LOG = System.getLogger(ClusterLogs.SERVER);
  private static final int MOST_STRANGERS = 1024;

  private final String server;
  private final ClusterHello.Labels labels;
  private final JobToken token;
  private final Room room;
  private final LimitedLog log = new LimitedLog(LOG, Time.SYSTEM);
  private final Map<Long, Stranger> strangers =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Long, Stranger> eldest) {
          return size() > MOST_STRANGERS;
        }
      };

  /**
   * Creates an admission.
   *
   * @param server the name of this process, for messages
   * @param labels the labels of the proofs
   * @param token the token, or none
   * @param room the check that throws if there is no room for one more session
   */
  ClusterAdmission(String server, ClusterHello.Labels labels, JobToken token, Room room) {
    this.server = server;
    this.labels = labels;
    this.token = token;
    this.room = room;
  }

  /** A check that throws if there is no room for one more session. */
  interface Room {
    void require() throws IOException;
  }

  /** A client that has not been admitted yet. */
  private static final class Stranger {
    final byte[] principal;
    final byte[] theirs;
    final byte[] own = JobToken.nonce();
    final byte @Nullable [] refusal;
    boolean proved;

    Stranger(byte[] principal, byte[] theirs, byte @Nullable [] refusal) {
      this.principal = principal;
      this.theirs = theirs;
      this.refusal = refusal;
    }
  }

  @Override
  public void onConnectRequest(long sessionId, byte[] credentials, long nowMs) {
    Stranger stranger = hear(credentials == null ? new byte[0] : credentials);
    if (stranger != null) {
      strangers.put(sessionId, stranger);
    }
  }

  private @Nullable Stranger hear(byte[] credentials) {
    int head = ClusterHello.MAGIC.length;
    if (credentials.length < head + 10
        || !Arrays.equals(Arrays.copyOf(credentials, head), ClusterHello.MAGIC)) {
      log.warn(
          "no client", "", server + " refuses a client that is not a client of a store cluster");
      return null;
    }
    ByteBuffer in = ByteBuffer.wrap(credentials, head, credentials.length - head);
    int version = in.get();
    byte[] principal = new byte[Long.BYTES];
    in.get(principal);
    boolean has = in.get() != 0 && in.remaining() == JobToken.NONCE_BYTES;
    byte[] theirs = new byte[has ? JobToken.NONCE_BYTES : 0];
    in.get(theirs);
    return new Stranger(principal, theirs, refusal(version, has));
  }

  private byte @Nullable [] refusal(int version, boolean hasToken) {
    if (version != Protocol.VERSION) {
      return refusal(
          ClusterHello.FAILED,
          "it uses version %d of the protocol, but this cluster uses version %d"
              .formatted(version, Protocol.VERSION));
    }
    if (hasToken != token.isSet()) {
      return hasToken
          ? refusal(ClusterHello.TOKEN_UNKNOWN, "it has a token, but this cluster has none")
          : refusal(ClusterHello.TOKEN_NEEDED, "it has no token");
    }
    try {
      room.require();
      return null;
    } catch (IOException | StoreException e) {
      return refusal(ClusterHello.FAILED, String.valueOf(e.getMessage()));
    }
  }

  private byte[] refusal(int what, String why) {
    log.warn("refusal " + what, "", "%s refuses a client: %s".formatted(server, why));
    byte[] text = why.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(1 + text.length).put((byte) what).put(text).array();
  }

  @Override
  public void onConnectedSession(SessionProxy session, long nowMs) {
    Stranger stranger = strangers.get(session.sessionId());
    if (stranger == null) {
      session.reject();
    } else if (stranger.refusal != null) {
      if (session.challenge(stranger.refusal)) {
        strangers.remove(session.sessionId());
      }
    } else if (token.isSet()) {
      byte[] proof = token.proof(labels.server(), stranger.theirs, stranger.own);
      session.challenge(
          ByteBuffer.allocate(1 + stranger.own.length + proof.length)
              .put((byte) ClusterHello.OK)
              .put(stranger.own)
              .put(proof)
              .array());
    } else {
      admit(session, stranger);
    }
  }

  @Override
  public void onChallengeResponse(long sessionId, byte[] response, long nowMs) {
    Stranger stranger = strangers.get(sessionId);
    if (stranger != null && response != null) {
      stranger.proved = token.isProof(response, labels.client(), stranger.theirs, stranger.own);
      if (!stranger.proved) {
        log.warn("token", "", server + " refuses a client: its token differs from this cluster's");
        strangers.remove(sessionId);
      }
    }
  }

  @Override
  public void onChallengedSession(SessionProxy session, long nowMs) {
    Stranger stranger = strangers.get(session.sessionId());
    if (stranger == null) {
      session.reject();
    } else if (stranger.proved) {
      admit(session, stranger);
    }
  }

  private void admit(SessionProxy session, Stranger stranger) {
    if (session.authenticate(stranger.principal)) {
      strangers.remove(session.sessionId());
    }
  }
}
