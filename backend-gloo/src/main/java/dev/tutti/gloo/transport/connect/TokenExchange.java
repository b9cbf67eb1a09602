package dev.tutti.gloo.transport.connect;

import dev.tutti.store.JobToken;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Proves the job's token on a new connection, on both sides, before the first message. */
public final class TokenExchange {
  /*
   * Both sides send 32 bytes twice: the one that connects a nonce, the other one a nonce, the first its
   * proof, and only if that is right the other one its own. The proofs are over both nonces and the two
   * ranks, so that none serves for another connection or direction. Neither side reads more than that.
   *
   * Without a token the proofs are zeros and prove nothing. The exchange then tells the one that connects
   * that the other one is through with TLS, and so with the certificate.
   */
  private static final String CONNECTOR = "tutti gloo connector 1";
  private static final String LISTENER = "tutti gloo listener 1";
  private static final byte[] NO_PROOF = new byte[JobToken.PROOF_BYTES];

  private final JobToken token;
  private final boolean connects;
  private final byte[] place;
  private final byte[] own = JobToken.nonce();
  private final ByteBuffer in = ByteBuffer.allocate(JobToken.NONCE_BYTES);
  private ByteBuffer out;
  private byte @Nullable [] theirs;
  private boolean checked;

  /**
   * Prepares an exchange.
   *
   * @param token of this rank; may be none
   * @param connects whether this rank connects, and the peer accepts
   * @param group name of the group
   * @param rank this rank
   * @param peer the other one
   */
  public TokenExchange(JobToken token, boolean connects, String group, int rank, int peer) {
    this.token = token;
    this.connects = connects;
    int connector = connects ? rank : peer;
    int listener = connects ? peer : rank;
    this.place =
        (group + '\0' + connector + '\0' + listener + '\0').getBytes(StandardCharsets.UTF_8);
    this.out = ByteBuffer.wrap(connects ? own : new byte[0]);
  }

  /**
   * Continues as far as is possible without waiting.
   *
   * @param wire does not block
   * @return whether the peer has proved that it has the token, and has this rank's proof
   * @throws IOException if it has not, or the connection ends
   */
  public boolean advance(ByteChannel wire) throws IOException {
    while (true) {
      if (out.hasRemaining()) {
        wire.write(out);
      }
      if (out.hasRemaining() || checked) {
        return !out.hasRemaining();
      }
      int count = wire.read(in);
      if (count < 0) {
        throw new EOFException("it ended the connection while both proved who they are");
      }
      if (in.hasRemaining()) {
        return false;
      }
      byte[] came = in.array().clone();
      in.clear();
      take(came);
    }
  }

  /** Tells whether there is something to be written. */
  public boolean hasUnsent() {
    return out.hasRemaining();
  }

  private void take(byte[] came) throws IOException {
    byte[] nonce = theirs;
    if (nonce == null) {
      theirs = came;
      out = ByteBuffer.wrap(connects ? proof(CONNECTOR, came) : own);
      return;
    }
    String label = connects ? LISTENER : CONNECTOR;
    if (!isProof(came, label, nonce)) {
      throw new IOException("it does not prove that it has the token of this rank");
    }
    checked = true;
    if (!connects) {
      out = ByteBuffer.wrap(proof(LISTENER, nonce));
    }
  }

  private boolean isProof(byte[] came, String label, byte[] nonce) {
    return token.isSet()
        ? token.isProof(came, label, place, connectors(nonce), listeners(nonce))
        : Arrays.equals(came, NO_PROOF);
  }

  private byte[] proof(String label, byte[] nonce) {
    return token.isSet()
        ? token.proof(label, place, connectors(nonce), listeners(nonce))
        : NO_PROOF;
  }

  private byte[] connectors(byte[] nonce) {
    return connects ? own : nonce;
  }

  private byte[] listeners(byte[] nonce) {
    return connects ? nonce : own;
  }
}
