package dev.tutti.fake.failure;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.OpType;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.EnumSet;
import java.util.Set;
import java.util.function.Consumer;

/** A backend whose steps a test defines; by default every step does nothing and succeeds. */
final class ScriptedProvider implements BackendProvider {
  interface Creation {
    void run(BackendContext context) throws Exception;
  }

  interface Collective {
    void run(Operation op) throws Exception;
  }

  interface Message {
    void start(Operation op);
  }

  Creation create = context -> {};
  Collective collective = op -> {};
  Message send = Operation::complete;
  Message recv = Operation::complete;
  Consumer<Throwable> abort = cause -> {};
  Runnable close = () -> {};
  Set<OpType> missing = Set.of();
  Feature[] features = {Feature.TAGS};
  boolean movesData = true;

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "scripted";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    Capabilities all = Capabilities.ofVersion1(features);
    Set<OpType> operations = EnumSet.copyOf(all.operations());
    operations.removeAll(missing);
    return all.toBuilder().operations(operations).build();
  }

  @Override
  public boolean movesData() {
    return movesData;
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    create.run(context);
    return (Backend)
        Proxy.newProxyInstance(
            Backend.class.getClassLoader(),
            new Class<?>[] {Backend.class},
            (proxy, method, arguments) ->
                switch (method.getName()) {
                  case "broadcast", "allReduce", "barrier", "monitoredBarrier" -> {
                    collective.run((Operation) arguments[0]);
                    yield null;
                  }
                  case "send" -> {
                    send.start((Operation) arguments[0]);
                    yield null;
                  }
                  case "recv" -> {
                    recv.start((Operation) arguments[0]);
                    yield null;
                  }
                  case "await" -> ((Operation) arguments[0]).parkUntilDone((long) arguments[1]);
                  case "abort" -> {
                    abort.accept((Throwable) arguments[0]);
                    yield null;
                  }
                  case "close" -> {
                    close.run();
                    yield null;
                  }
                  default -> InvocationHandler.invokeDefault(proxy, method, arguments);
                });
  }

  /** Returns a provider whose receives do not end by themselves. */
  static ScriptedProvider deaf() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.recv = op -> {};
    return provider;
  }
}
