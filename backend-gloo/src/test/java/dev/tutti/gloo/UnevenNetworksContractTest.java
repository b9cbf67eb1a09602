package dev.tutti.gloo;

import org.junit.jupiter.api.Tag;

/** Runs the contract suite with three ranks in one network namespace and one in another. */
@Tag("full")
class UnevenNetworksContractTest extends TwoNetworksContractTest {
  @Override
  int hostOf(int rank) {
    return rank / 3;
  }
}
