package dev.tutti.cli.simulate;

import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Link;
import dev.tutti.spi.OperationPlan.Step;
import dev.tutti.spi.PlanRequest;

/**
 * Computes the time of a plan on a network, as LogGP does: a round takes the trip of a message, the
 * work for each message, and its bytes at the speed of the narrowest link on the way.
 */
public final class CostModel {
  private CostModel() {}

  /**
   * Returns the time of an operation.
   *
   * @param request the operation
   * @param plan its steps
   * @param network the network
   */
  public static Cost cost(PlanRequest request, OperationPlan plan, Network network) {
    Cost cost = new Cost();
    for (Step step : plan.steps()) {
      if (step.link() == Link.DEVICE) {
        onDevices(cost, step, network.device());
        continue;
      }
      LinkCost link = step.link() == Link.MEMORY ? network.memory() : network.socket();
      int ranks = Math.min(network.hostRanks(), network.hostCores());
      double ofByte =
          network.crowding() * link.ofByte(request.type(), (double) request.bytes(), ranks);
      cost.add(Resource.REDUCTION, step.rounds() * step.reduced() * ofByte);
      if (step.link() == Link.MEMORY) {
        inMemory(cost, step, network, ofByte);
      } else {
        overSockets(cost, step, network, request.hosts(), ofByte);
      }
    }
    return cost;
  }

  private static void inMemory(Cost cost, Step step, Network network, double ofByte) {
    LinkCost memory = network.memory();
    int ranks = network.hostRanks();
    double slower = network.crowding();
    cost.add(Resource.ROUNDS, slower * step.rounds() * (memory.round() + memory.each() * ranks));
    cost.add(Resource.MEMORY, bytes(step) * ofByte);
  }

  /** Adds a kernel. */
  private static void onDevices(Cost cost, Step step, DeviceCost device) {
    cost.add(Resource.LATENCY, step.rounds() * device.trip());
    cost.add(Resource.LINKS, bytes(step) * device.send());
    double alone = device.start() + device.gap();
    cost.add(Resource.LAUNCH, Math.max(alone, device.call() - cost.seconds()));
  }

  private static void overSockets(
      Cost cost, Step step, Network network, int hosts, double copying) {
    LinkCost socket = network.socket();
    double slower = network.crowding();
    boolean leavesHost = hosts > 1;
    boolean leavesRack = hosts > network.rackHosts();
    double trip =
        slower * socket.round()
            + (leavesHost ? network.nicLatency() : 0)
            + (leavesRack ? network.spineLatency() : 0);
    cost.add(Resource.LATENCY, step.rounds() * trip);
    cost.add(Resource.MESSAGES, slower * step.rounds() * step.messages() * socket.each());
    double nic = leavesHost ? step.flows() * network.nic() : 0;
    double spine = leavesRack ? spine(step, network, hosts) : 0;
    Resource narrowest =
        spine > Math.max(copying, nic)
            ? Resource.SPINE
            : nic > copying ? Resource.NIC : Resource.SOCKETS;
    cost.add(narrowest, bytes(step) * Math.max(copying, Math.max(nic, spine)));
  }

  /** Returns the seconds in which a byte of each rank that sends leaves its rack. */
  private static double spine(Step step, Network network, int hosts) {
    int apart = step.distance() / network.hostRanks();
    int around = Math.max(1, Math.min(apart, hosts - apart));
    int leaving = Math.min(around, network.rackHosts());
    return (double) leaving
        * step.flows()
        * network.nic()
        * network.oversubscription()
        / network.rackHosts();
  }

  private static double bytes(Step step) {
    return step.rounds() * step.messages() * step.bytes();
  }

  /**
   * Returns by what the parameters of a {@link LinkCost} are multiplied in the time of an operation
   * on one host, in their order.
   */
  static double[] factors(PlanRequest request, OperationPlan plan, Shares shares) {
    double[] factors = new double[LinkCost.PARAMETERS];
    for (int i = 0; i < factors.length; i++) {
      double[] unit = new double[LinkCost.PARAMETERS];
      unit[i] = 1;
      LinkCost link = LinkCost.of(unit, shares);
      Network network = Network.ofHosts(request.ranks(), request.coresPerHost(), link, link);
      factors[i] = cost(request, plan, network).seconds();
    }
    return factors;
  }
}
