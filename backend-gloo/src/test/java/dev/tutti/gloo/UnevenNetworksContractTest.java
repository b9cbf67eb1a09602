package dev.tutti.gloo;

/** Runs the contract suite with three ranks in one network namespace and one in another. */
class UnevenNetworksContractTest extends TwoNetworksContractTest {
  @Override
  int hostOf(int rank) {
    return rank / 3;
  }
}
