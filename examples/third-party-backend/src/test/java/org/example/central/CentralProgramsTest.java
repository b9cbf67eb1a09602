package org.example.central;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.fuzz.FuzzContract;

class CentralProgramsTest implements FuzzContract {
  @Override
  public ContractSubject subject() {
    return ContractSubject.of(new CentralProvider());
  }
}
