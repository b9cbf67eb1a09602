package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class ForwardingProcessGroupTest {
  private final List<Method> called = new ArrayList<>();
  private final List<Object[]> arguments = new ArrayList<>();

  private final ProcessGroup target =
      (ProcessGroup)
          Proxy.newProxyInstance(
              ProcessGroup.class.getClassLoader(),
              new Class<?>[] {ProcessGroup.class},
              (proxy, method, given) -> {
                called.add(method);
                arguments.add(given == null ? new Object[0] : given);
                return valueOf(method.getReturnType(), 7);
              });

  private final ProcessGroup forwarding =
      new ForwardingProcessGroup() {
        @Override
        protected ProcessGroup delegate() {
          return target;
        }
      };

  private static Object valueOf(Class<?> type, int number) {
    if (type == int.class) {
      return number;
    }
    if (type == long.class) {
      return (long) number;
    }
    if (type == boolean.class) {
      return true;
    }
    if (type == Duration.class) {
      return Duration.ofSeconds(number);
    }
    if (type == String.class) {
      return "text " + number;
    }
    return type == Optional.class ? Optional.of(number) : null;
  }

  @Test
  void handsEveryAbstractMethodOnWithItsArguments() throws Exception {
    int methods = 0;
    for (Method method : ProcessGroup.class.getMethods()) {
      if (!Modifier.isAbstract(method.getModifiers())) {
        continue;
      }
      methods++;
      called.clear();
      arguments.clear();
      Class<?>[] types = method.getParameterTypes();
      Object[] given = new Object[types.length];
      for (int i = 0; i < types.length; i++) {
        given[i] = valueOf(types[i], i);
      }
      Object result = method.invoke(forwarding, given);
      assertThat(called).as(method.toString()).containsExactly(method);
      assertThat(arguments.getFirst()).as(method.toString()).containsExactly(given);
      assertThat(result).isEqualTo(valueOf(method.getReturnType(), 7));
    }
    assertThat(methods).isGreaterThan(45);
  }

  @Test
  void aShortFormEndsInTheLongOne() {
    List<CallOptions> seen = new ArrayList<>();
    ProcessGroup counting =
        new ForwardingProcessGroup() {
          @Override
          protected ProcessGroup delegate() {
            return target;
          }

          @Override
          public Work broadcast(Tensor tensor, int root, CallOptions options) {
            seen.add(options);
            return super.broadcast(tensor, root, options);
          }
        };
    counting.broadcast(Tensor.of(1f), 3);
    assertThat(seen).containsExactly(CallOptions.DEFAULT);
    assertThat(called.getFirst().getParameterCount()).isEqualTo(3);
  }
}
