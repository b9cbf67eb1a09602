package dev.tutti.cli;

import java.util.function.Consumer;

/** Makes the agreement of a launch, hosting its store or connecting to it. */
interface Agreements {
  /**
   * Opens what a launch needs to meet the other nodes and to let its ranks meet.
   *
   * @param plan what is launched
   * @param messages takes what there is to say of a long wait, from any thread
   * @throws LaunchException if the store cannot be hosted or reached
   */
  Agreement open(LaunchPlan plan, Consumer<String> messages);
}
