package dev.tutti.cuda.ipc;

import dev.tutti.cuda.access.ExitHook;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A warning, when the process ends, about tensors that it shared and that others still use (c10d:
 * the end of {@code CudaIPCSentDataLimbo}). Writes to standard error, because loggers are already
 * closed then.
 */
final class IpcExit {
  private static final Set<IpcSender> SENDERS = ConcurrentHashMap.newKeySet();

  static {
    if (!ExitHook.add("tutti-ipc-exit", IpcExit::warn)) {
      SENDERS.clear(); // the process is ending already
    }
  }

  private IpcExit() {}

  static void watch(IpcSender sender) {
    SENDERS.add(sender);
  }

  static void forget(IpcSender sender) {
    SENDERS.remove(sender);
  }

  private static void warn() {
    int used = SENDERS.stream().mapToInt(IpcSender::abandoned).sum();
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
