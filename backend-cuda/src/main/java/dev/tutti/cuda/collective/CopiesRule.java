package dev.tutti.cuda.collective;

import dev.tutti.Settings;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.kernels.PeerLinks;
import java.util.List;

/**
 * The rule for when an all-reduce beside computation goes by copies; the same on all ranks.
 *
 * @param leastBytes the minimum number of bytes
 * @param shareInProcess whether ranks of one process share a device: there, a stream that waits may
 *     stop one of the other rank
 */
record CopiesRule(long leastBytes, boolean shareInProcess) {
  static CopiesRule of(Settings settings, List<PeerInfo> ranks) {
    boolean areFast =
        PeerInfo.slowestLinks(ranks) != PeerLinks.PCIE && PeerInfo.mostOnOneDevice(ranks) == 1;
    return new CopiesRule(
        areFast
            ? CudaSettings.bytes(settings, CudaSettings.COPIES_BYTES, Long.MAX_VALUE)
            : Long.MAX_VALUE,
        PeerInfo.shareInProcess(ranks));
  }
}
