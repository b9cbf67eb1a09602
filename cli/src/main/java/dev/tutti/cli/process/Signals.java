package dev.tutti.cli.process;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * Takes over the signals that would end this process, until closed.
 *
 * <p>The JDK's only means for this is {@code sun.misc.Signal}, which javac warns about wherever it
 * is named; so it is looked up at run time. On a JVM without it nothing is taken over, and the
 * launcher's shutdown hook ends the ranks.
 */
public final class Signals implements AutoCloseable {
  private static final int[] HANDLED = {Posix.SIGTERM, Posix.SIGINT, Posix.SIGHUP};

  private final List<Runnable> restore = new ArrayList<>();

  private Signals() {}

  /**
   * Starts to hand signals to a listener in place of what they did before.
   *
   * @param listener takes the signal's number, on a thread of the JVM's
   */
  public static Signals handle(IntConsumer listener) {
    Signals signals = new Signals();
    for (int signal : HANDLED) {
      try {
        signals.restore.add(install(signal, listener));
      } catch (ReflectiveOperationException | IllegalArgumentException e) {
        System.getLogger("dev.tutti.cli")
            .log(System.Logger.Level.WARNING, "cannot forward " + Posix.signalName(signal), e);
      }
    }
    return signals;
  }

  private static Runnable install(int number, IntConsumer listener)
      throws ReflectiveOperationException {
    Class<?> signalType = Class.forName("sun.misc.Signal");
    Class<?> handlerType = Class.forName("sun.misc.SignalHandler");
    MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    Object signal =
        signalType.getConstructor(String.class).newInstance(Posix.signalName(number).substring(3));
    MethodHandle accept =
        lookup.findVirtual(
            IntConsumer.class, "accept", MethodType.methodType(void.class, int.class));
    MethodHandle target =
        MethodHandles.dropArguments(
            MethodHandles.insertArguments(accept.bindTo(listener), 0, number), 0, signalType);
    Object handler = MethodHandleProxies.asInterfaceInstance(handlerType, target);
    MethodHandle handle =
        lookup.findStatic(
            signalType, "handle", MethodType.methodType(handlerType, signalType, handlerType));
    Object previous = call(handle, signal, handler);
    return () -> call(handle, signal, previous);
  }

  private static Object call(MethodHandle handle, Object signal, Object handler) {
    try {
      return handle.invoke(signal, handler);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Gives the signals back to whom they were taken from. */
  @Override
  public void close() {
    restore.forEach(Runnable::run);
    restore.clear();
  }
}
