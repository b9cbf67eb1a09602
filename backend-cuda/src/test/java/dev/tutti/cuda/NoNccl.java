package dev.tutti.cuda;

import dev.tutti.BackendException;
import dev.tutti.Settings;
import dev.tutti.cuda.nccl.NcclCalls;
import java.util.function.Function;

/** A substitute for a machine without NCCL. */
public final class NoNccl {
  /** Opens no library. */
  public static final Function<Settings, NcclCalls> HERE =
      settings -> {
        throw new BackendException("no NCCL in this test");
      };

  private NoNccl() {}
}
