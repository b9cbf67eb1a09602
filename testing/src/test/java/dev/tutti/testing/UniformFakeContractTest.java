package dev.tutti.testing;

import dev.tutti.fake.FakeProvider;

/** Runs on the fake group of uniform ranks what needs no real results. */
class UniformFakeContractTest implements ArgumentsContract, WorkContract, BatchContract {
  @Override
  public ContractSubject subject() {
    return ContractSubject.of(new FakeProvider().withUniformRanks(true));
  }
}
