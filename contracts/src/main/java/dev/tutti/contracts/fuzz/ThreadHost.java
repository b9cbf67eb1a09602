package dev.tutti.contracts.fuzz;

import dev.tutti.Store;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.stream.IntStream;

/** A host that runs programs with all ranks as threads of this process. */
final class ThreadHost implements ProgramHost {
  private final ContractSubject subject;

  ThreadHost(ContractSubject subject) {
    this.subject = subject;
  }

  @Override
  public Outcome run(Program program, Duration patience) throws InterruptedException {
    try (Store store = new HashStore(patience.multipliedBy(4))) {
      ProgramRunner runner =
          new ProgramRunner(subject, program, IntStream.range(0, program.size()).boxed().toList());
      return runner.run(store, patience);
    }
  }
}
