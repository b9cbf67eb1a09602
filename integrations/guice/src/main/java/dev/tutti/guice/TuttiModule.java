package dev.tutti.guice;

import com.google.inject.AbstractModule;
import com.google.inject.Provider;
import com.google.inject.Singleton;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;

/**
 * A module that binds {@link ProcessGroup}, {@link Store} and {@link Settings} for an application
 * that uses Guice.
 *
 * <p>The group is joined once, when it is first requested. The code that created the injector
 * closes the group.
 */
public final class TuttiModule extends AbstractModule {
  private final GroupOptions options;

  /** Creates a module that takes all options from the environment of this process. */
  public TuttiModule() {
    this(GroupOptions.DEFAULT);
  }

  /**
   * Creates a module.
   *
   * @param options how to join the job
   */
  public TuttiModule(GroupOptions options) {
    this.options = options;
  }

  @Override
  protected void configure() {
    bind(GroupOptions.class).toInstance(options);
    bind(Settings.class).toInstance(options.settings());
    // Not by @Provides methods: if one throws, Guice reads class files, and warns about those of
    // newer Java versions.
    bind(ProcessGroup.class).toProvider(() -> ProcessGroup.init(options)).in(Singleton.class);
    Provider<ProcessGroup> group = getProvider(ProcessGroup.class);
    bind(Store.class).toProvider(() -> group.get().store()).in(Singleton.class);
  }
}
