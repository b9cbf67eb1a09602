package dev.tutti.contracts;

import dev.tutti.fake.FakeProvider;

/** Runs the tests that need no real results on the fake group of uniform ranks. */
class UniformFakeContractTest implements ArgumentsContract, WorkContract, BatchContract {
  @Override
  public ContractSubject subject() {
    return ContractSubject.of(new FakeProvider().withUniformRanks(true));
  }
}
