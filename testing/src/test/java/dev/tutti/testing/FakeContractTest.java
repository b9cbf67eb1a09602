package dev.tutti.testing;

import dev.tutti.fake.FakeProvider;

/** Runs on the fake group what needs no real results: arguments, works, listeners, life. */
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
