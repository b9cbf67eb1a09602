package dev.tutti.fake;

import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;

/** Provides another provider's backends, with faults between them and their group. */
public final class FaultyProvider extends DecoratedProvider {
  private final Faults faults;

  /**
   * Creates a provider of the same name.
   *
   * @param inner creates the backends
   * @param faults the faults; shared by all ranks
   */
  public FaultyProvider(BackendProvider inner, Faults faults) {
    super(inner);
    this.faults = faults;
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    faults.requireAlive(context.globalRanks().get(context.rank()));
    return FaultyBackend.of(inner.create(context), context, faults);
  }
}
