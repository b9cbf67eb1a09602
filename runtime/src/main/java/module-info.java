import org.jspecify.annotations.NullMarked;

/** The runtime of groups: set-up, the order of operations, deadlines and failures. */
@NullMarked
@SuppressWarnings("module") // dev.tutti.cli is compiled later
module dev.tutti.runtime {
  requires transitive dev.tutti;
  requires dev.tutti.cpu;
  requires dev.tutti.store;
  requires static java.management;
  requires static jdk.httpserver;
  requires static jdk.jfr;
  requires static jdk.management;
  requires static jdk.unsupported;
  requires static org.jspecify;

  exports dev.tutti.runtime.debug to
      dev.tutti.cli;
  exports dev.tutti.runtime.failure to
      dev.tutti.cli;
  exports dev.tutti.runtime.launch to
      dev.tutti.cli;
  exports dev.tutti.runtime.operation to
      dev.tutti.cli;
  exports dev.tutti.runtime.record to
      dev.tutti.cli;
  exports dev.tutti.runtime.settings to
      dev.tutti.cli;
  exports dev.tutti.runtime.signal to
      dev.tutti.cli;
  exports dev.tutti.runtime.status to
      dev.tutti.cli;
  exports dev.tutti.runtime.view to
      dev.tutti.cli;

  uses dev.tutti.spi.BackendProvider;
  uses dev.tutti.spi.StoreProvider;
  uses dev.tutti.spi.StreamBlockProvider;

  provides dev.tutti.spi.ProcessGroupFactory with
      dev.tutti.runtime.group.RuntimeFactory;
}
