package dev.tutti.cli.simulate;

/**
 * Hosts in racks below a spine, all alike.
 *
 * @param hostRanks the number of ranks on a host
 * @param hostCores the number of its cores
 * @param rackHosts the number of hosts in a rack
 * @param oversubscription how much faster the hosts of a rack are than its links to the spine
 * @param memory the costs of memory that ranks share
 * @param socket the costs of sockets between ranks of one host
 * @param nicLatency the seconds that a message takes longer to another host
 * @param nic the seconds in which the interfaces of a host send a byte
 * @param spineLatency the seconds that a message takes longer to another rack
 * @param device the costs of the devices of a host
 * @param store the costs of a store
 */
public record Network(
    int hostRanks,
    int hostCores,
    int rackHosts,
    double oversubscription,
    LinkCost memory,
    LinkCost socket,
    double nicLatency,
    double nic,
    double spineLatency,
    DeviceCost device,
    StoreCost store) {
  /**
   * Returns hosts of which one was measured: in racks of 32, with interfaces of 12.5 GB/s, whose
   * GPUs and stores cost what those of docs/scale.md do.
   *
   * @param ranks the number of ranks on a host
   * @param cores the number of its cores
   */
  public static Network ofHosts(int ranks, int cores, LinkCost memory, LinkCost socket) {
    return new Network(
        ranks,
        cores,
        32,
        1,
        memory,
        socket,
        10e-6,
        1 / 12.5e9,
        5e-6,
        DeviceCost.H200,
        StoreCost.MEASURED);
  }

  /** Returns how many ranks share a core; 1 if there are enough. */
  double crowding() {
    return Math.max(1, (double) hostRanks / hostCores);
  }

  /** Returns the same network with another number of ranks on each host. */
  public Network withRanks(int ranks) {
    return with(ranks, device);
  }

  /** Returns the same network where all operations on devices are in graphs. */
  public Network inGraph() {
    return with(hostRanks, device.inGraph());
  }

  private Network with(int ranks, DeviceCost devices) {
    return new Network(
        ranks,
        hostCores,
        rackHosts,
        oversubscription,
        memory,
        socket,
        nicLatency,
        nic,
        spineLatency,
        devices,
        store);
  }
}
