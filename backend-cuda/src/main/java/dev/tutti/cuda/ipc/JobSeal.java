package dev.tutti.cuda.ipc;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.store.JobToken;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** A seal on bytes for the processes of a job: an HMAC-SHA256 keyed with the job's token. */
final class JobSeal {
  /** The length of a seal in bytes. */
  static final int BYTES = JobToken.PROOF_BYTES;

  private static final String LABEL = "tutti cuda handle";

  private final JobToken token;
  private final long job;

  /**
   * Creates a seal.
   *
   * @param text the secret that the processes of the job share, as {@link JobToken#of} takes it
   */
  JobSeal(String text) {
    token = JobToken.of(text);
    if (!token.isSet()) {
      throw new IllegalArgumentException("the job's token is empty");
    }
    byte[] name = "tutti cuda job".getBytes(UTF_8);
    job = ByteBuffer.wrap(of(name, name.length)).getLong();
  }

  /** Returns a number that identifies the job without revealing the token. */
  long job() {
    return job;
  }

  /** Returns the seal of the given number of bytes at the start of an array. */
  byte[] of(byte[] bytes, int length) {
    return token.proof(LABEL, Arrays.copyOf(bytes, length));
  }
}
