package dev.tutti.runtime.group;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.runtime.settings.Providers;
import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.spi.StreamBlockProvider;

/** Offers this runtime to {@link ProcessGroup#init}. */
public final class RuntimeFactory implements ProcessGroupFactory {
  /** Creates the factory; for {@link java.util.ServiceLoader}. */
  public RuntimeFactory() {}

  @Override
  public ProcessGroup init(GroupOptions options) {
    return GroupJoin.isAsked(options) ? GroupJoin.join(options) : GroupInit.init(options);
  }

  @Override
  public ProcessGroup join(GroupOptions options) {
    return GroupJoin.join(options);
  }

  @Override
  public StreamBlockProvider streamBlock(String deviceType) {
    return Providers.streamBlock(deviceType);
  }
}
