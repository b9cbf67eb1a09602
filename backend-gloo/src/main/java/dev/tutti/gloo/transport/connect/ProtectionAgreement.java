package dev.tutti.gloo.transport.connect;

import dev.tutti.RendezvousException;
import dev.tutti.spi.PeerLateException;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/** Rejects a group whose ranks do not all protect their connections in the same way. */
public final class ProtectionAgreement {
  private final Protection own;
  private final String self;
  private final String group;
  private final RankBlob[] blobs;

  /**
   * Prepares the comparison.
   *
   * @param own how this rank protects its connections
   * @param self a description of this rank
   * @param group the name of the group
   * @param blobs the data that all ranks published, in rank order
   */
  public ProtectionAgreement(Protection own, String self, String group, RankBlob[] blobs) {
    this.own = own;
    this.self = self;
    this.group = group;
    this.blobs = blobs;
  }

  /**
   * Compares the ranks.
   *
   * @param published the bytes from which {@code blobs} were read
   * @throws RendezvousException naming the ranks that differ
   */
  public void require(List<byte[]> published) {
    requireAlike(Protection.TLS, TlsSettings.ENABLED.name() + " or " + TlsSettings.GLOO.name());
    requireAlike(Protection.TOKEN, JobToken.SETTING.name());
    if (own.token().isSet()) {
      String others =
          ranks(rank -> !BlobSeal.isRight(published.get(rank), own.token(), group, rank));
      if (!others.isEmpty()) {
        throw new RendezvousException(
            self
                + ": "
                + others
                + " did not prove possession of the token of this rank; "
                + JobToken.SETTING.name()
                + " must be the same for all ranks of a job");
      }
    }
  }

  private void requireAlike(long flag, String setting) {
    String with = ranks(rank -> has(rank, flag));
    if (with.isEmpty()) {
      return;
    }
    String pytorch = ranks(rank -> !blobs[rank].address().tutti());
    if (!pytorch.isEmpty()) {
      throw new RendezvousException(
          self
              + ": "
              + setting
              + " is set, but PyTorch, which does not support it, runs on "
              + pytorch
              + "; unset it for all ranks, or leave PyTorch out");
    }
    String without = ranks(rank -> !has(rank, flag));
    if (!without.isEmpty()) {
      throw new RendezvousException(
          self
              + ": "
              + setting
              + " is set for "
              + with
              + ", but not for "
              + without
              + "; it must be the same for all ranks of a job");
    }
  }

  private boolean has(int rank, long flag) {
    return (blobs[rank].address().flags() & flag) != 0;
  }

  private String ranks(IntPredicate condition) {
    List<Integer> found = IntStream.range(0, blobs.length).filter(condition).boxed().toList();
    return found.isEmpty() ? "" : PeerLateException.ranks(found);
  }
}
