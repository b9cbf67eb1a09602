package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.Device;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.DeviceSession;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PlanRequest;
import dev.tutti.store.HashStore;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests that a decorator passes on every method of the service interfaces. */
class DecoratorsTest {
  private static final Map<Class<?>, Object> SAMPLES =
      Map.ofEntries(
          Map.entry(boolean.class, true),
          Map.entry(int.class, 1),
          Map.entry(long.class, 8L),
          Map.entry(long[].class, new long[] {1}),
          Map.entry(String.class, "cpu"),
          Map.entry(Duration.class, Duration.ofSeconds(3)),
          Map.entry(List.class, List.of(Tensor.of(1f))),
          Map.entry(Set.class, Set.of("cpu")),
          Map.entry(Map.class, Map.of(Capabilities.Feature.TAGS, "a test")),
          Map.entry(Optional.class, Optional.of("a test")),
          Map.entry(
              BackendContext.class,
              RawWorld.context(0, 2, new HashStore(), RawWorld.TIMEOUT, new ConcurrentHashMap<>())),
          Map.entry(Throwable.class, new IllegalStateException("a test")),
          Map.entry(Tensor.class, Tensor.of(1f)),
          Map.entry(Device.class, Device.cuda(1)),
          Map.entry(ReduceOp.class, ReduceOp.MAX),
          Map.entry(Settings.class, Settings.ofEnvironment(Map.of())),
          Map.entry(
              PlanRequest.class,
              new PlanRequest(OpType.ALL_REDUCE, 8, 1, 2, 2, Settings.ofEnvironment(Map.of()))),
          Map.entry(Capabilities.class, Capabilities.ofVersion1()),
          Map.entry(
              Operation.class, new TestOperation(OpType.RECV_ANY_SOURCE, 1, RawWorld.TIMEOUT)),
          Map.entry(DeviceEvent.class, nothing(DeviceEvent.class)),
          Map.entry(DeviceSession.class, nothing(DeviceSession.class)),
          Map.entry(SymmetricMemory.class, nothing(SymmetricMemory.class)));

  private final List<String> called = new ArrayList<>();

  enum Decorator {
    FAULTS {
      @Override
      BackendProvider around(BackendProvider provider) {
        return new FaultyProvider(provider, new Faults());
      }
    },
    RECORDER {
      @Override
      BackendProvider around(BackendProvider provider) {
        return new CallRecorder().wrap(provider);
      }
    };

    abstract BackendProvider around(BackendProvider provider);
  }

  @ParameterizedTest
  @EnumSource(Decorator.class)
  void everyMethodOfAProviderIsPassedOn(Decorator decorator) throws Exception {
    BackendProvider decorated = decorator.around(noting(BackendProvider.class));
    for (Method method : BackendProvider.class.getDeclaredMethods()) {
      if (!method.getName().equals("create")) {
        checkPassedOn(method, decorated);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Decorator.class)
  void everyMethodOfABackendIsPassedOn(Decorator decorator) throws Exception {
    BackendContext context = (BackendContext) sample(BackendContext.class);
    for (Method method : Backend.class.getDeclaredMethods()) {
      if (!Modifier.isStatic(method.getModifiers()) && !isBehindRun(method)) {
        BackendProvider provider = decorator.around(noting(BackendProvider.class));
        checkPassedOn(method, provider.create(context));
      }
    }
  }

  /** Returns whether a group calls the method only through {@code run}. */
  private static boolean isBehindRun(Method method) {
    return Arrays.stream(OpType.values()).anyMatch(type -> type.label().equals(method.getName()));
  }

  private void checkPassedOn(Method method, Object decorated) throws Exception {
    Object[] arguments = Arrays.stream(method.getParameterTypes()).map(this::sample).toArray();
    called.clear();
    Object result = method.invoke(decorated, arguments);
    assertThat(called).containsExactly(describe(method, arguments));
    if (result instanceof Backend made) {
      checkPassedOn(Backend.class.getMethod("hasForeignRanks"), made);
    } else if (method.getReturnType() != void.class) {
      assertThat(result).as("result of %s", method).isSameAs(sample(method.getReturnType()));
    }
  }

  private Object sample(Class<?> type) {
    Object sample = type == Backend.class ? noting(Backend.class) : SAMPLES.get(type);
    if (sample == null) {
      throw new AssertionError("no sample of " + type);
    }
    return sample;
  }

  private static String describe(Method method, Object... arguments) {
    return method + " of " + Arrays.deepToString(arguments);
  }

  /** Creates an object that records its calls and returns sample values. */
  private <T> T noting(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              called.add(describe(method, arguments == null ? new Object[0] : arguments));
              return method.getReturnType() == void.class ? null : sample(method.getReturnType());
            }));
  }

  /** Creates an object that is never called. */
  private static <T> T nothing(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              throw new AssertionError("not to be called: " + method);
            }));
  }
}
