package dev.tutti.cuda.collective;

import dev.tutti.BackendException;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.share.PeerInfo;
import dev.tutti.cuda.share.Sharing;
import java.util.List;

/** A static method that checks that a device can access those of its peers. */
final class PeerAccess {
  private PeerAccess() {}

  /**
   * Checks the access and, for plain allocations, enables it. A peer's device that this process
   * cannot see is not checked; if it cannot be accessed, the mapping fails.
   *
   * @throws BackendException if a device cannot be accessed
   */
  static void require(
      Cuda cuda, CudaDevice device, List<PeerInfo> ranks, Sharing sharing, int rank) {
    CudaDriver driver = Parts.of(cuda).driver();
    for (int r = 0; r < ranks.size(); r++) {
      for (int d = 0; d < cuda.deviceCount(); d++) {
        if (d == device.index() || !driver.devices().pciBusId(d).equals(ranks.get(r).pciBusId())) {
          continue;
        }
        if (!driver.devices().canAccessPeer(device.index(), d)) {
          throw new BackendException(
              ("rank %s: %s cannot reach the memory of rank %s's device %s; there is no NVLink"
                      + " between them, or the host's settings forbid it")
                  .formatted(rank, device, r, ranks.get(r).pciBusId()));
        }
        if (sharing == Sharing.IPC) {
          Parts.of(device).context().enter();
          driver.contexts().enablePeerAccess(Parts.of(cuda.device(d)).context().handle());
        }
      }
    }
  }
}
