package dev.tutti.fake;

import dev.tutti.BackendException;
import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.PeerMismatchException;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The provider of the backend "threaded", whose ranks are threads of one JVM. Results are real and
 * do not depend on timing: elements are accumulated in rank order, half-precision types in float32.
 *
 * <p>Ranks whose calls do not match get a {@link PeerMismatchException} that lists the calls of all
 * ranks.
 *
 * @see ThreadedWorld
 */
public final class ThreadedProvider implements BackendProvider {
  /** The name of the backend. */
  public static final String NAME = "threaded";

  /** Distinguishes this JVM's hubs from those of others. */
  private static final String JVM = HexFormat.of().toHexDigits(Time.SYSTEM.random());

  private static final AtomicInteger HUBS = new AtomicInteger();

  /** The hubs whose ranks are currently meeting; rank 0 adds and removes them. */
  private static final ConcurrentMap<String, Hub> MEETING = new ConcurrentHashMap<>();

  /** Creates a provider. */
  public ThreadedProvider() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return Capabilities.ofVersion1(
        Feature.UNEVEN_PARTS,
        Feature.TAGS,
        Feature.SYMMETRIC_MEMORY,
        Feature.DETECTS_DEAD_PEERS,
        Feature.RECONFIGURE);
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return false;
  }

  /**
   * {@inheritDoc}
   *
   * @throws BackendException if rank 0 is in another JVM
   * @throws PeerLostException if rank 0 has given up
   * @throws dev.tutti.StoreClosedException if the context's store is closed meanwhile
   * @throws TimeoutException naming the ranks that did not arrive in time
   */
  @Override
  public Backend create(BackendContext context) throws Exception {
    long deadline = context.deadlineNanos();
    return context.rank() == 0 ? host(context, deadline) : visit(context, deadline);
  }

  private static Backend host(BackendContext context, long deadlineNanos) throws Exception {
    Hub hub = new Hub(context.group(), context.size(), context.time());
    String id = JVM + HexFormat.of().toHexDigits(HUBS.incrementAndGet());
    MEETING.put(id, hub);
    try {
      context.store().set(Hub.KEY, id);
      hub.join(context, deadlineNanos);
      // A later group may be given the same store.
      context.store().deleteKey(Hub.KEY);
    } finally {
      MEETING.remove(id);
    }
    return new ThreadedBackend(hub, 0);
  }

  private static Backend visit(BackendContext context, long deadlineNanos) throws Exception {
    byte[] id;
    try {
      id = context.store().get(Hub.KEY, context.timeout());
    } catch (StoreTimeoutException e) {
      throw (TimeoutException)
          new TimeoutException(
                  "rank 0 did not join threaded group %s within %s"
                      .formatted(context.group(), Printable.time(context.timeout())))
              .initCause(e);
    }
    String name = new String(id, StandardCharsets.UTF_8);
    if (!name.startsWith(JVM)) {
      throw new BackendException(
          ("rank %s of group %s cannot find rank 0 in this JVM: the ranks of backend threaded must"
                  + " be threads of one JVM")
              .formatted(context.rank(), context.group()));
    }
    @Nullable Hub hub = MEETING.get(name);
    if (hub == null) {
      throw PeerLostException.farewell(
          0, "rank 0 has given up joining threaded group " + context.group());
    }
    hub.join(context, deadlineNanos);
    return new ThreadedBackend(hub, context.rank());
  }
}
