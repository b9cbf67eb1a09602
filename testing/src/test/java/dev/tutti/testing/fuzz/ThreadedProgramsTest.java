package dev.tutti.testing.fuzz;

import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.BackendProvider;
import dev.tutti.testing.ContractSubject;

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
