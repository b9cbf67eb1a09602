package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;

/** Lets a test call the methods of a backend by name, and runs them as a group does. */
final class CallByName {
  private CallByName() {}

  static Backend of(Backend backend) {
    return (Backend)
        Proxy.newProxyInstance(
            Backend.class.getClassLoader(),
            new Class<?>[] {Backend.class},
            (proxy, method, arguments) -> {
              try {
                if (arguments == null
                    || !(arguments[0] instanceof Operation op)
                    || !method.getName().equals(op.type().label())) {
                  return method.invoke(backend, arguments);
                }
                fill(op.call(), method, arguments);
                backend.run(op);
                return op.call().memory();
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static void fill(Call call, Method method, Object... arguments) {
    OpType type = call.type();
    Class<?>[] types = method.getParameterTypes();
    int tensors = 0;
    int ints = type == OpType.RECV_ANY_SOURCE ? 1 : 0;
    long[] splits = {};
    boolean pair = types.length > 2 && isTensors(types[1]) && isTensors(types[2]);
    for (int i = 1; i < types.length; i++) {
      switch (arguments[i]) {
        case Tensor tensor -> set(call, List.of(tensor), pair, tensors++);
        case List<?> list ->
            set(call, list.stream().map(Tensor.class::cast).toList(), pair, tensors++);
        case ReduceOp reduceOp -> call.reduceOp(reduceOp);
        case long[] rows -> {
          call.splits(splits, rows);
          splits = rows;
        }
        case Integer number -> {
          if (ints++ == 0) {
            call.root(number);
          } else {
            call.tag(number);
          }
        }
        case Boolean waitAllRanks -> call.waitAllRanks(waitAllRanks);
        case Long byteSize -> call.byteSize(byteSize);
        default -> throw new AssertionError(method + " takes a " + types[i]);
      }
    }
  }

  private static boolean isTensors(Class<?> type) {
    return type == Tensor.class || type == List.class;
  }

  private static void set(Call call, List<Tensor> tensors, boolean pair, int place) {
    if (pair ? place == 0 : call.type() == OpType.RECV || call.type() == OpType.RECV_ANY_SOURCE) {
      call.outputs(tensors);
    } else if (pair || call.type() == OpType.SEND || call.type() == OpType.ALL_REDUCE_SPARSE) {
      call.inputs(tensors);
    } else {
      call.inPlace(tensors);
    }
  }
}
