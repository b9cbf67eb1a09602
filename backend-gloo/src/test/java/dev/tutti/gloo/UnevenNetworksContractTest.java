package dev.tutti.gloo;

import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Runs the contract suite with three ranks in one network namespace and one in another; {@code
 * -Dtutti.long=true} lets it run.
 */
@EnabledIfSystemProperty(
    named = "tutti.long",
    matches = "true",
    disabledReason = "runs for long; TwoNetworksContractTest does with two hosts of two ranks")
class UnevenNetworksContractTest extends TwoNetworksContractTest {
  @Override
  int hostOf(int rank) {
    return rank / 3;
  }
}
