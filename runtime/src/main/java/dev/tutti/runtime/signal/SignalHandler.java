package dev.tutti.runtime.signal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleProxies;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Takes over one signal of this process.
 *
 * <p>The JDK's only means for this is {@code sun.misc.Signal}, which causes a javac warning
 * wherever it is named, so it is looked up at run time.
 */
public final class SignalHandler {
  private final MethodHandle handle;
  private final Object signal;
  private final Object installed;
  private final Object previous;
  private final boolean wasDefault;

  private SignalHandler(
      MethodHandle handle, Object signal, Object installed, Object previous, boolean wasDefault) {
    this.handle = handle;
    this.signal = signal;
    this.installed = installed;
    this.previous = previous;
    this.wasDefault = wasDefault;
  }

  /**
   * Passes a signal to a listener instead of its previous handler.
   *
   * @param name the name of the signal, without SIG
   * @param listener called on a thread of the JVM
   * @throws ReflectiveOperationException if this JVM provides no means for it
   * @throws IllegalArgumentException if the system has no such signal, or the JVM uses it itself
   */
  public static SignalHandler install(String name, Runnable listener)
      throws ReflectiveOperationException {
    Class<?> signalType = Class.forName("sun.misc.Signal");
    Class<?> handlerType = Class.forName("sun.misc.SignalHandler");
    MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    Object signal = signalType.getConstructor(String.class).newInstance(name);
    MethodHandle run = lookup.findVirtual(Runnable.class, "run", MethodType.methodType(void.class));
    MethodHandle target = MethodHandles.dropArguments(run.bindTo(listener), 0, signalType);
    Object handler = MethodHandleProxies.asInterfaceInstance(handlerType, target);
    MethodHandle handle =
        lookup.findStatic(
            signalType, "handle", MethodType.methodType(handlerType, signalType, handlerType));
    Object previous = call(handle, signal, handler);
    boolean wasDefault = previous.equals(handlerType.getField("SIG_DFL").get(null));
    return new SignalHandler(handle, signal, handler, previous, wasDefault);
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

  /** Returns whether no other handler had taken over the signal before. */
  public boolean wasDefault() {
    return wasDefault;
  }

  /** Gives the signal back to its previous handler, unless another one has taken it over since. */
  public void restore() {
    Object current = call(handle, signal, previous);
    if (!current.equals(installed)) {
      Object _ = call(handle, signal, current);
    }
  }
}
