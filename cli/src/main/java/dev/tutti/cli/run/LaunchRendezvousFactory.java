package dev.tutti.cli.run;

import java.util.function.Consumer;

/** Makes the rendezvous of a launch, hosting its store or connecting to it. */
public interface LaunchRendezvousFactory {
  /**
   * Opens what a launch needs to meet the other nodes and to let its ranks meet.
   *
   * @param plan what is launched
   * @param messages takes what there is to say of a long wait, from any thread
   * @throws dev.tutti.cli.process.LaunchException if the store cannot be hosted or reached
   */
  LaunchRendezvous open(LaunchPlan plan, Consumer<String> messages);
}
