package dev.tutti.cli.run;

import java.util.function.Consumer;

/** A factory for the rendezvous of a launch, which hosts the launch's store or connects to it. */
public interface LaunchRendezvousFactory {
  /**
   * Opens what a launch needs for the nodes and the ranks to meet.
   *
   * @param plan the plan to launch
   * @param messages receives messages about a long wait, on any thread
   * @throws dev.tutti.cli.process.LaunchException if the store cannot be hosted or reached
   */
  LaunchRendezvous open(LaunchPlan plan, Consumer<String> messages);
}
