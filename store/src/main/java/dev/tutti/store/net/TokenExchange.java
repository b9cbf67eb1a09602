package dev.tutti.store.net;

import dev.tutti.store.JobToken;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Proves the job's token on a new connection, in both directions, before the first message. */
public final class TokenExchange {
  /*
   * Each side sends 32 bytes twice: the connecting side sends a nonce, the accepting side a nonce,
   * the connecting side its proof, and, only if that is right, the accepting side its own proof.
   * The proofs cover both nonces, the two ranks and what the connection is for, so that no proof can
   * be used for another connection or direction. Neither side reads more than this.
   *
   * Without a token the proofs are zeros and prove nothing. The exchange then shows the connecting
   * side that the accepting side has finished TLS, and so has accepted the certificate.
   */
  private static final String CONNECTOR = " connector 1";
  private static final String LISTENER = " listener 1";
  private static final byte[] NO_PROOF = new byte[JobToken.PROOF_BYTES];

  private final String protocol;
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
   * @param protocol what the connection is for, such as "tutti gloo"
   * @param token the token of this rank; there may be none
   * @param connects whether this rank connects, and the peer accepts
   * @param group the name of the group, or of the socket of the accepting side
   * @param rank this rank
   * @param peer the other rank
   */
  public TokenExchange(
      String protocol, JobToken token, boolean connects, String group, int rank, int peer) {
    this.protocol = protocol;
    this.token = token;
    this.connects = connects;
    int connector = connects ? rank : peer;
    int listener = connects ? peer : rank;
    this.place =
        (group + '\0' + connector + '\0' + listener + '\0').getBytes(StandardCharsets.UTF_8);
    this.out = ByteBuffer.wrap(connects ? own : new byte[0]);
  }

  /**
   * Advances as far as possible without waiting.
   *
   * @param wire a non-blocking channel
   * @return whether the peer has proved that it has the token, and has received this rank's proof
   * @throws IOException if the peer fails to prove it, or the connection ends
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
        throw new EOFException("it closed the connection during authentication");
      }
      if (in.hasRemaining()) {
        return false;
      }
      byte[] came = in.array().clone();
      in.clear();
      take(came);
    }
  }

  /** Returns whether there are bytes to be written. */
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
      throw new IOException("it did not prove that it has the token of this rank");
    }
    checked = true;
    if (!connects) {
      out = ByteBuffer.wrap(proof(LISTENER, nonce));
    }
  }

  private boolean isProof(byte[] came, String label, byte[] nonce) {
    return token.isSet()
        ? token.isProof(came, protocol + label, place, connectors(nonce), listeners(nonce))
        : Arrays.equals(came, NO_PROOF);
  }

  private byte[] proof(String label, byte[] nonce) {
    return token.isSet()
        ? token.proof(protocol + label, place, connectors(nonce), listeners(nonce))
        : NO_PROOF;
  }

  private byte[] connectors(byte[] nonce) {
    return connects ? own : nonce;
  }

  private byte[] listeners(byte[] nonce) {
    return connects ? nonce : own;
  }
}
