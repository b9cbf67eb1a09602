package dev.tutti.contracts.fuzz;

import dev.tutti.Capabilities;
import dev.tutti.fake.ThreadedProvider;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;

/** The provider of backends that perform one operation incorrectly on one rank. */
record FaultyBackendProvider(String operation, int rank, Fault fault) implements BackendProvider {
  private static final BackendProvider THREADED = new ThreadedProvider();

  /** A replacement for an operation. */
  interface Fault {
    /**
     * Performs the operation.
     *
     * @param right performs it correctly
     * @param op the operation
     */
    void run(Call right, Operation op) throws Throwable;
  }

  /** A call of the backend. */
  interface Call {
    void run() throws Throwable;
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "faulty";
  }

  @Override
  public Set<String> deviceTypes() {
    return THREADED.deviceTypes();
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return THREADED.capabilities(deviceType);
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    Backend own = THREADED.create(context);
    return (Backend)
        Proxy.newProxyInstance(
            Backend.class.getClassLoader(),
            new Class<?>[] {Backend.class},
            (_, method, arguments) -> {
              if (method.getName().equals("run")
                  && arguments[0] instanceof Operation op
                  && op.type().label().equals(operation)
                  && context.rank() == rank) {
                fault.run(() -> call(own, method, arguments), op);
                return null;
              }
              return call(own, method, arguments);
            });
  }

  private static Object call(Backend backend, java.lang.reflect.Method method, Object[] arguments)
      throws Throwable {
    try {
      return method.invoke(backend, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
