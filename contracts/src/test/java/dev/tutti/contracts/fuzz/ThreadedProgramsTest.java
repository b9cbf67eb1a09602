package dev.tutti.contracts.fuzz;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;

// @start region="suite"
class ThreadedProgramsTest implements FuzzContract {
  @Override
  public ContractSubject subject() {
    return new ContractSubject() {
      @Override
      public BackendProvider provider() {
        return new ThreadedProvider();
      }

      @Override
      public int[] worldSizes() {
        return new int[] {1, 2, 3, 4, 5, 8};
      }
    };
  }
}
// @end
