package dev.tutti.aeron.cluster.member;

import dev.tutti.StoreException;
import dev.tutti.StoreTokenException;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.spi.Printable;
import dev.tutti.store.JobToken;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * How a client and a cluster agree on a session: the client's side, and the format of both sides.
 */
public final class ClusterHello implements io.aeron.security.CredentialsSupplier {
  /*
   *   client   MAGIC, VERSION, session, whether it has a token [nonce]
   *   cluster  (only with a token, or to refuse) OK, nonce, proof; or what is wrong, and a text
   *   client   proof
   *
   * Aeron carries these as credentials, challenge and response. The session number is the
   * principal: all members keep it, and it is in every frame.
   */
  public static final int OK = 1;
  public static final int FAILED = 2;
  public static final int TOKEN_NEEDED = 4;
  public static final int TOKEN_UNKNOWN = 5;
  public static final byte[] MAGIC = "TuttiClu".getBytes(StandardCharsets.US_ASCII);
  static final String SAME =
      JobToken.SETTING.name()
          + " must be the same for all members of the cluster and all ranks, or unset for all";

  private final String server;
  private final Labels labels;
  private final JobToken token;
  private final long session;
  private final byte[] nonce = JobToken.nonce();

  /**
   * Creates the client's side.
   *
   * @param server the name of the other side, for messages
   * @param labels the labels of the proofs
   * @param token the token, or none
   * @param session the number of the session
   */
  public ClusterHello(String server, Labels labels, JobToken token, long session) {
    this.server = server;
    this.labels = labels;
    this.token = token;
    this.session = session;
  }

  /** The labels of the proofs of each side, so that no proof can be used elsewhere. */
  public enum Labels {
    /** For clients of the store. */
    STORE,
    /** For members that read each other's archive. */
    ARCHIVE;

    public String client() {
      return "tutti aeron cluster " + name() + " client 1";
    }

    public String server() {
      return "tutti aeron cluster " + name() + " server 1";
    }
  }

  @Override
  public byte[] encodedCredentials() {
    ByteBuffer out = ByteBuffer.allocate(MAGIC.length + 10 + JobToken.NONCE_BYTES);
    out.put(MAGIC).put(Protocol.VERSION).putLong(session).put((byte) (token.isSet() ? 1 : 0));
    if (token.isSet()) {
      out.put(nonce);
    }
    return Arrays.copyOf(out.array(), out.position());
  }

  @Override
  public byte[] onChallenge(byte[] challenge) {
    ByteBuffer in = ByteBuffer.wrap(challenge);
    int answer = in.hasRemaining() ? in.get() : FAILED;
    if (answer == TOKEN_NEEDED) {
      throw refused("it requires a token, but this process has none; " + SAME);
    }
    if (answer == TOKEN_UNKNOWN) {
      throw refused("it has no token, but this process has one; " + SAME);
    }
    if (answer != OK) {
      String why = Printable.line(StandardCharsets.UTF_8.decode(in).toString());
      throw new StoreException(server + " cannot serve this process: " + why);
    }
    if (in.remaining() != JobToken.NONCE_BYTES + JobToken.PROOF_BYTES) {
      throw refused("its proof of the token is truncated");
    }
    byte[] theirs = new byte[JobToken.NONCE_BYTES];
    byte[] proof = new byte[JobToken.PROOF_BYTES];
    in.get(theirs).get(proof);
    if (!token.isSet() || !token.isProof(proof, labels.server(), nonce, theirs)) {
      throw refused("it did not prove that it has the same token; " + SAME);
    }
    return token.proof(labels.client(), nonce, theirs);
  }

  private StoreTokenException refused(String why) {
    return new StoreTokenException(server + ": " + why, null);
  }
}
