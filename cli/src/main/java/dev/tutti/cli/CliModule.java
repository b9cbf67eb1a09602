package dev.tutti.cli;

import com.google.inject.AbstractModule;
import dev.tutti.Settings;
import dev.tutti.cli.process.Terminal;
import dev.tutti.cli.run.LaunchRendezvousFactory;
import dev.tutti.cli.run.RunCommand.Environment;
import dev.tutti.cli.run.StoreRendezvousFactory;
import java.util.Map;

/** The bindings of what the commands need, and the only place where implementations are chosen. */
public class CliModule extends AbstractModule {
  private final Terminal terminal;
  private final Map<String, String> environment;

  /**
   * Creates a module.
   *
   * @param terminal where commands print
   * @param environment the environment of this process
   */
  public CliModule(Terminal terminal, Map<String, String> environment) {
    this.terminal = terminal;
    this.environment = environment;
  }

  @Override
  protected void configure() {
    bind(Terminal.class).toInstance(terminal);
    bind(Environment.class).toInstance(new Environment(environment));
    bind(Settings.class).toInstance(Settings.ofEnvironment(environment));
    bindAgreements();
  }

  /** Binds how launchers rendezvous; tests bind something else. */
  protected void bindAgreements() {
    bind(LaunchRendezvousFactory.class).to(StoreRendezvousFactory.class);
  }
}
