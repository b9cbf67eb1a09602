package org.example.central;

import dev.tutti.testing.ContractSubject;
import dev.tutti.testing.fuzz.FuzzContract;

class CentralProgramsTest implements FuzzContract {
  @Override
  public ContractSubject subject() {
    return ContractSubject.of(new CentralProvider());
  }
}
