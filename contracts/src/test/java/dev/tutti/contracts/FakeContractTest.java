package dev.tutti.contracts;

import dev.tutti.fake.FakeProvider;

/**
 * Runs the tests that need no real results on the fake group: arguments, works, listeners, life
 * cycle.
 */
class FakeContractTest
    implements ArgumentsContract,
        CapabilitiesContract,
        WorkContract,
        ListenerContract,
        BatchContract,
        SubgroupContract,
        AbortContract,
        CloseContract {
  @Override
  public ContractSubject subject() {
    return ContractSubject.of(new FakeProvider());
  }
}
