package dev.tutti.gloo.transport.connect;

import dev.tutti.store.JobToken;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Seals the data that a rank publishes with the job's token, so that the others see at once whether
 * it has the same token. The seal is stored in bytes of the address that Gloo does not use.
 */
public final class BlobSeal {
  private static final String LABEL = "tutti gloo address 1";

  private BlobSeal() {}

  /**
   * Puts the seal into the data to be published.
   *
   * @param blob the result of {@link RankBlob#toBytes()}
   * @param token the token; if there is none, nothing is changed
   * @param group the name of the group
   * @param rank the rank that publishes it
   */
  public static void put(byte[] blob, JobToken token, String group, int rank) {
    if (token.isSet()) {
      ByteBuffer.wrap(blob).put(position(blob), token.proof(LABEL, place(group, rank), blob));
    }
  }

  /**
   * Returns whether a rank with the same token published the given data.
   *
   * @param blob data that {@link RankBlob#read} accepted
   * @param token the token of this rank
   * @param group the name of the group
   * @param rank the rank that published it
   */
  public static boolean isRight(byte[] blob, JobToken token, String group, int rank) {
    byte[] plain = blob.clone();
    byte[] seal = new byte[JobToken.PROOF_BYTES];
    int position = position(blob);
    ByteBuffer.wrap(blob).get(position, seal);
    ByteBuffer.wrap(plain).put(position, new byte[seal.length]);
    return token.isProof(seal, LABEL, place(group, rank), plain);
  }

  private static byte[] place(String group, int rank) {
    return (group + '\0' + rank + '\0').getBytes(StandardCharsets.UTF_8);
  }

  private static int position(byte[] blob) {
    long host = ByteBuffer.wrap(blob).order(ByteOrder.LITTLE_ENDIAN).getLong(0);
    return Math.toIntExact(Long.BYTES + host + Long.BYTES + PeerAddress.SEAL);
  }
}
