package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.testkit.Execution;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.logging.Handler;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.logging.StreamHandler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests what the suite reports about a backend that breaks its promises. */
@Isolated("reads the log")
@Timeout(300)
class ContractHintsTest {
  /** A backend that cannot reduce. */
  static class NoReduce implements ReduceContract {
    @Override
    public ContractSubject subject() {
      return new Pairs(new Flawed());
    }
  }

  /** A backend that does not report mismatched calls. */
  static class NoMismatches implements MismatchContract {
    @Override
    public ContractSubject subject() {
      return new Pairs(new Flawed());
    }
  }

  /** A backend whose listeners throw. */
  static class Listening implements ListenerContract {
    @Override
    public ContractSubject subject() {
      return new Pairs(new ThreadedProvider());
    }
  }

  private record Pairs(BackendProvider provider) implements ContractSubject {
    @Override
    public int[] worldSizes() {
      return new int[] {2};
    }
  }

  private static final class Flawed implements BackendProvider {
    private final BackendProvider threaded = new ThreadedProvider();

    @Override
    public int spiVersion() {
      return SPI_VERSION;
    }

    @Override
    public String name() {
      return "flawed";
    }

    @Override
    public Set<String> deviceTypes() {
      return threaded.deviceTypes();
    }

    @Override
    public Capabilities capabilities(String deviceType) {
      return threaded.capabilities(deviceType);
    }

    @Override
    public Backend create(BackendContext context) throws Exception {
      Backend backend = threaded.create(context);
      return (Backend)
          Proxy.newProxyInstance(
              Backend.class.getClassLoader(),
              new Class<?>[] {Backend.class},
              (proxy, method, arguments) -> invoke(backend, method, arguments));
    }

    private static Object invoke(Backend backend, Method method, Object[] arguments)
        throws Throwable {
      if (method.getName().equals("run") && ((Operation) arguments[0]).type() == OpType.REDUCE) {
        throw new IllegalStateException("no kernel for this");
      }
      try {
        return method.invoke(backend, arguments);
      } catch (InvocationTargetException e) {
        throw e.getCause() instanceof PeerMismatchException
            ? new IllegalStateException("something is wrong")
            : e.getCause();
      }
    }
  }

  @Test
  void aReductionThatThrowsIsNamed() {
    List<String> failures = Execution.of(NoReduce.class).failures();
    assertThat(failures)
        .isNotEmpty()
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .containsPattern("the reduction of \\w+ [A-Z]+ with \\d+ elements failed")
                    .contains("its capabilities must not declare it")
                    .contains("no kernel for this"));
  }

  @Test
  void aBackendThatFindsNoMismatchIsToldWhatToOverride() {
    List<String> failures = Execution.of(NoMismatches.class).failures();
    assertThat(failures)
        .isNotEmpty()
        .allSatisfy(failure -> assertThat(failure).contains("let detectsMismatches return false"));
  }

  @Test
  void deliberateFaultsHaveNoStackTraces() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Handler handler =
        new StreamHandler(
            new PrintStream(out, true, StandardCharsets.UTF_8), new SimpleFormatter());
    Logger logger = Logger.getLogger("dev.tutti.runtime.operation.Listeners");
    logger.addHandler(handler);
    try {
      assertThat(Execution.of(Listening.class).failures()).isEmpty();
    } finally {
      handler.flush();
      logger.removeHandler(handler);
    }
    assertThat(out.toString(StandardCharsets.UTF_8))
        .contains("thrown on purpose by the contract suite: listener, before")
        .doesNotContain("\tat ");
  }
}
