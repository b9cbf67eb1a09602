package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.fake.simulation.SimulatedProgram;
import dev.tutti.fake.simulation.SimulatedProgram.Outcome;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Runs each test of a {@link StoreContract} in simulations, with a store of its own, and each seed
 * twice: the second run must take the same steps.
 */
final class SimulatedContract implements InvocationInterceptor {
  private static final int SEEDS = Integer.getInteger("tutti.seeds", TestTier.isFast() ? 2 : 20);
  private static final int FIRST = Integer.getInteger("tutti.firstSeed", 0);

  @Override
  public void interceptBeforeEachMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context) {
    invocation.skip();
  }

  @Override
  public void interceptAfterEachMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context) {
    invocation.skip();
  }

  @Override
  public void interceptTestMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context)
      throws Throwable {
    invocation.skip();
    runAll(call);
  }

  @Override
  public void interceptTestTemplateMethod(
      Invocation<Void> invocation,
      ReflectiveInvocationContext<Method> call,
      ExtensionContext context)
      throws Throwable {
    invocation.skip();
    runAll(call);
  }

  private static void runAll(ReflectiveInvocationContext<Method> call) throws Throwable {
    for (int seed = FIRST; seed < FIRST + SEEDS; seed++) {
      Outcome first = run(seed, call);
      if (first.failure() != null) {
        throw new AssertionError("seed " + seed + ": " + first.failure(), first.failure());
      }
      assertThat(run(seed, call).hash()).as("steps of seed %d", seed).isEqualTo(first.hash());
    }
  }

  private static Outcome run(long seed, ReflectiveInvocationContext<Method> call) {
    StoreContract test = (StoreContract) call.getTarget().orElseThrow();
    return SimulatedProgram.run(
        seed,
        program -> {
          test.openStore();
          try {
            ReflectionSupport.invokeMethod(
                call.getExecutable(), test, call.getArguments().toArray());
          } finally {
            test.closeStore();
          }
        });
  }
}
