package dev.tutti.cuda.ipc;

import dev.tutti.cuda.access.ExitHook;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;

/**
 * A warning, when the process ends, about tensors that it shared and that others still use (c10d:
 * the end of {@code CudaIPCSentDataLimbo}). Writes to standard error, because loggers are already
 * closed then.
 */
final class IpcExit {
  private static final Set<IntSupplier> SENDERS = ConcurrentHashMap.newKeySet();

  static {
    if (!ExitHook.add(IpcExit::warn)) {
      SENDERS.clear(); // the process is ending already
    }
  }

  private IpcExit() {}

  /**
   * Watches a sender.
   *
   * @param sender counts the tensors that are still used, on any thread
   */
  static void watch(IntSupplier sender) {
    SENDERS.add(sender);
  }

  static void forget(IntSupplier sender) {
    SENDERS.remove(sender);
  }

  private static void warn() {
    int used = SENDERS.stream().mapToInt(IntSupplier::getAsInt).sum();
    if (used > 0) {
      System.err.println(warning(used));
    }
  }

  private static String warning(int used) {
    return ("WARNING: process %s exits without CudaIpc.close() while %s tensors that it shared have"
            + " not been returned; other processes lose them. Call CudaIpc.awaitReturned first")
        .formatted(ProcessHandle.current().pid(), used);
  }
}
