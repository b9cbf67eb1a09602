package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Seals bytes for the processes of a job, by HMAC-SHA256 with the job's token as the key. */
final class JobSeal {
  /** Is the length of a seal. */
  static final int BYTES = 32;

  private static final String ALGORITHM = "HmacSHA256";

  private final SecretKeySpec key;
  private final long job;

  /**
   * Creates a seal.
   *
   * @param token what the processes of the job have in common, not empty
   */
  JobSeal(String token) {
    if (token.isEmpty()) {
      throw new IllegalArgumentException("the token of the job is empty");
    }
    key = new SecretKeySpec(token.getBytes(UTF_8), ALGORITHM);
    byte[] name = "tutti cuda job".getBytes(UTF_8);
    job = ByteBuffer.wrap(of(name, name.length)).getLong();
  }

  /** Returns a number that the job is told apart by, and that does not tell the token. */
  long job() {
    return job;
  }

  /** Returns the seal of the first bytes of an array. */
  byte[] of(byte[] bytes, int length) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      mac.update(bytes, 0, length);
      return mac.doFinal();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every JVM has " + ALGORITHM, e);
    }
  }
}
