package dev.tutti.gloo;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.fuzz.FuzzContract;
import dev.tutti.spi.BackendProvider;

/** Runs random programs on ranks in three processes, some of which have two ranks. */
class GlooProcessesProgramsTest implements FuzzContract {
  @Override
  public int processes() {
    return 2;
  }

  @Override
  public ContractSubject subject() {
    return new ContractSubject() {
      @Override
      public BackendProvider provider() {
        return new GlooProvider();
      }

      @Override
      public int[] worldSizes() {
        return new int[] {2, 3, 5};
      }

      @Override
      public dev.tutti.Settings settings() {
        return GlooWorld.settings();
      }
    };
  }
}
