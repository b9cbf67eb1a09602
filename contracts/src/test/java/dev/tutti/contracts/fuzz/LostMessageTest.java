package dev.tutti.contracts.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.contracts.ContractSubject;
import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests in virtual time that programs that hang are found and reduced in size. */
@Isolated("threads of other tests in shared locks would bring in real time")
class LostMessageTest {
  @Test
  void aLostMessageIsFound() {
    ContractSubject subject =
        new FuzzerTest.Threes(new FaultyBackendProvider("send", 0, (_, op) -> op.complete()));
    FuzzerTest.minimized(
            new Fuzzer(
                subject,
                (program, patience) -> simulated(subject, program, patience),
                FuzzerTest.PATIENCE,
                FuzzerTest.PATIENCE),
            fuzzer -> fuzzer.check(FuzzerTest.SMALL))
        .contains("HUNG", "no step ended within", "recv");
  }

  private static Outcome simulated(ContractSubject subject, Program program, Duration patience) {
    AtomicReference<Outcome> outcome = new AtomicReference<>();
    SimulatedProgram.Outcome run =
        SimulatedProgram.run(
            program.seed(),
            simulation -> {
              Time time = simulation.time();
              ProgramRunner runner =
                  new ProgramRunner(
                      subject,
                      program,
                      IntStream.range(0, program.size()).boxed().toList(),
                      _ -> time,
                      time);
              outcome.set(runner.run(simulation.store(patience.multipliedBy(4)), patience));
            });
    assertThat(run.failure()).isNull();
    return outcome.get();
  }
}
