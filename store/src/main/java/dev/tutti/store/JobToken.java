package dev.tutti.store;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The secret that all processes of a job share. A holder can prove that it has the secret without
 * revealing it: each side of a connection chooses a nonce, and each answers with a code over both
 * nonces (HMAC-SHA256). Immutable; never reveals the secret.
 */
public final class JobToken {
  /** The token of this job. */
  public static final Setting<JobToken> SETTING =
      Setting.secret(
          "TUTTI_TOKEN",
          "secret of the job, at least 16 characters; a process without it can neither use the"
              + " store of the job nor join its ranks",
          JobToken::of);

  /** The absence of a token. */
  public static final JobToken NONE = new JobToken(new byte[0]);

  /** The size of a nonce in bytes. */
  public static final int NONCE_BYTES = 32;

  /** The size of a proof in bytes. */
  public static final int PROOF_BYTES = 32;

  /**
   * The minimum number of characters of a token: a shorter one could be guessed from a recorded
   * handshake.
   */
  public static final int MIN_CHARACTERS = 16;

  private static final String ALGORITHM = "HmacSHA256";
  private static final String DEBUG = "tutti debug 1";
  private static final SecureRandom RANDOM = new SecureRandom();

  private final byte[] secret;

  private JobToken(byte[] secret) {
    this.secret = secret;
  }

  /**
   * Creates a token. Line ends after the secret, which files and shells add, are ignored.
   *
   * @param text the secret, at least {@link #MIN_CHARACTERS} random characters; empty for no token
   * @throws IllegalArgumentException if the secret is shorter
   */
  public static JobToken of(String text) {
    if (text.isEmpty()) {
      return NONE;
    }
    String secret = text.replaceFirst("[\r\n]+\\z", "");
    int characters = secret.codePointCount(0, secret.length());
    if (characters < MIN_CHARACTERS) {
      throw new IllegalArgumentException(
          "the token must have at least %d characters, but has %d"
              .formatted(MIN_CHARACTERS, characters));
    }
    return new JobToken(secret.getBytes(StandardCharsets.UTF_8));
  }

  /** Reads the token from the environment of this process. */
  public static JobToken fromEnvironment() {
    return Settings.fromEnvironment().get(SETTING);
  }

  /** Returns whether there is a token. */
  public boolean isSet() {
    return secret.length > 0;
  }

  /** Returns a new nonce of {@link #NONCE_BYTES} bytes. */
  public static byte[] nonce() {
    byte[] nonce = new byte[NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  /**
   * Returns a proof that only a holder of this token can compute.
   *
   * @param label identifies the prover and the verifier, so that a proof cannot be used for another
   *     purpose; must not contain NUL
   * @param parts the data that the proof covers, such as the nonces of both sides
   * @return {@link #PROOF_BYTES} bytes
   * @throws IllegalStateException if there is no token
   */
  public byte[] proof(String label, byte[]... parts) {
    if (!isSet()) {
      throw new IllegalStateException("no token is set");
    }
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(secret, ALGORITHM));
      mac.update(label.getBytes(StandardCharsets.UTF_8));
      mac.update((byte) 0);
      for (byte[] part : parts) {
        mac.update(part);
      }
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this JVM does not support " + ALGORITHM, e);
    }
  }

  /**
   * Returns whether a proof is correct, in a time that does not depend on where it is wrong.
   *
   * @param proof the proof that was received
   * @param label as in {@link #proof}
   * @param parts as in {@link #proof}
   */
  public boolean isProof(byte[] proof, String label, byte[]... parts) {
    return MessageDigest.isEqual(proof(label, parts), proof);
  }

  /**
   * Returns the secret of the job's debug servers, 64 hexadecimal digits. It is derived from this
   * token, which cannot be computed from it: who has it can look at ranks, but neither use the
   * store nor become a rank.
   *
   * @throws IllegalStateException if there is no token
   */
  public String debugSecret() {
    return HexFormat.of().formatHex(proof(DEBUG));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof JobToken token && MessageDigest.isEqual(secret, token.secret);
  }

  @Override
  public int hashCode() {
    // The same for all tokens, because a hash would reveal something about the secret.
    return JobToken.class.hashCode();
  }

  @Override
  public String toString() {
    return isSet() ? "JobToken[set]" : "JobToken[none]";
  }
}
