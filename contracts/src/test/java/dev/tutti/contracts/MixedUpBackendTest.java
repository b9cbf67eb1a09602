package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import dev.tutti.testkit.Execution;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the suite finds backends that mix up ranks or groups. */
@Timeout(300)
class MixedUpBackendTest {
  /** A backend that mistakes the ranks of a group for ranks of the job. */
  static class GlobalRoots implements SubgroupContract {
    @Override
    public ContractSubject subject() {
      return new Threes(new MixedUp(false));
    }
  }

  /** A backend that sends the messages of all groups through the group of all ranks. */
  static class OneMailbox implements ConcurrencyContract {
    @Override
    public ContractSubject subject() {
      return new Threes(new MixedUp(true));
    }
  }

  private record Threes(BackendProvider provider) implements ContractSubject {
    @Override
    public int[] worldSizes() {
      return new int[] {3};
    }
  }

  private static final class MixedUp implements BackendProvider {
    private final BackendProvider threaded = new ThreadedProvider();
    private final Map<Integer, Backend> ofAll = new ConcurrentHashMap<>();
    private final boolean messages;

    MixedUp(boolean messages) {
      this.messages = messages;
    }

    @Override
    public int spiVersion() {
      return SPI_VERSION;
    }

    @Override
    public String name() {
      return "mixed-up";
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
      Backend own = threaded.create(context);
      if (context.group().equals("0")) {
        ofAll.put(context.rank(), own);
      }
      int rank = context.globalRanks().get(context.rank());
      Backend mailbox = messages ? ofAll.getOrDefault(rank, own) : own;
      return (Backend)
          Proxy.newProxyInstance(
              Backend.class.getClassLoader(),
              new Class<?>[] {Backend.class},
              (proxy, method, arguments) -> {
                if (!method.getName().equals("run")) {
                  return call(own, method, arguments);
                }
                Call called = ((Operation) arguments[0]).call();
                if (!messages && called.type() == OpType.BROADCAST) {
                  called.root(context.globalRanks().get(called.root()));
                }
                boolean message = called.type() == OpType.SEND || called.type() == OpType.RECV;
                return call(message ? mailbox : own, method, arguments);
              });
    }

    private static Object call(Backend backend, Method method, Object[] arguments)
        throws Throwable {
      try {
        return method.invoke(backend, arguments);
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }
  }

  private static String onlyFailure(Class<?> contract) {
    List<String> failures = Execution.of(contract).failures();
    assertThat(failures).hasSize(1);
    return failures.get(0);
  }

  @Test
  void rootsOfTheJobInAGroupAreFound() {
    assertThat(onlyFailure(GlobalRoots.class)).contains("broadcast from rank 0 of the group");
  }

  @Test
  void messagesOfAnotherGroupAreFound() {
    assertThat(onlyFailure(OneMailbox.class)).contains("message in the first group");
  }
}
