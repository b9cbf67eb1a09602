package dev.tutti.cuda.provider;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.nccl.NcclBackend;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclWorld;
import dev.tutti.cuda.share.FarRanksException;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Bootstrap;
import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The fallback to NCCL for a group whose ranks cannot share memory, if all of them have NCCL. */
final class NcclFallback {
  private static final String KEY = "tutti/beyond";

  private final BackendContext context;
  private final FarRanksException reason;

  private NcclFallback(BackendContext context, FarRanksException reason) {
    this.context = context;
    this.reason = reason;
  }

  /**
   * Creates the group; all ranks must call this together.
   *
   * @param context the context of the group
   * @param cuda provides the device
   * @param nccl opens NCCL
   * @param reason why the ranks cannot share memory
   * @throws BackendException on all ranks, if any rank lacks NCCL
   * @throws RendezvousException if not all ranks arrive
   */
  static NcclBackend join(
      BackendContext context,
      Cuda cuda,
      Function<Settings, NcclCalls> nccl,
      FarRanksException reason) {
    NcclCalls calls = new NcclFallback(context, reason).agree(nccl);
    NcclBackendProvider.warn(context.settings());
    String text = "the ranks are connected by NCCL because " + reason.getMessage();
    return NcclWorld.joinAlone(context, cuda, calls, Map.of(Feature.SYMMETRIC_MEMORY, text));
  }

  /** Sends the other ranks whether this rank has NCCL, and receives the same from them. */
  private NcclCalls agree(Function<Settings, NcclCalls> nccl) {
    NcclCalls calls = null;
    String missing = "";
    try {
      calls = nccl.apply(context.settings());
    } catch (BackendException e) {
      missing = String.valueOf(e.getMessage());
    }
    Bootstrap bootstrap = context.bootstrap();
    bootstrap.publish(KEY, missing.getBytes(StandardCharsets.UTF_8));
    if (calls == null) {
      throw refused(context.rank(), missing);
    }
    int[] ranks = IntStream.range(0, context.size()).toArray();
    List<byte[]> all =
        bootstrap.collect(KEY, ranks, "report whether it has NCCL", context.deadlineNanos());
    for (int r = 0; r < all.size(); r++) {
      String text = Printable.decode(all.get(r));
      if (!text.isEmpty()) {
        throw refused(r, text);
      }
    }
    return calls;
  }

  private BackendException refused(int rank, @Nullable String missing) {
    return new BackendException(
        "%s; NCCL could connect them, but rank %s has no NCCL: %s"
            .formatted(reason.getMessage(), rank, missing),
        reason);
  }
}
