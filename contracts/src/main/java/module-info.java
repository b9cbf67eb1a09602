import org.jspecify.annotations.NullMarked;

/** Contract suites and random programs for backends, stores and stream blocks. */
@NullMarked
module dev.tutti.contracts {
  requires static transitive org.jspecify;
  requires java.management;
  requires jdk.management;
  requires transitive dev.tutti;
  requires transitive dev.tutti.store;
  requires transitive dev.tutti.fake;
  requires transitive dev.tutti.testing;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires transitive org.assertj.core;

  exports dev.tutti.contracts;
  exports dev.tutti.contracts.fuzz;
  exports dev.tutti.contracts.history;

  uses dev.tutti.spi.BackendProvider;

  opens dev.tutti.contracts to
      org.junit.platform.commons;
  opens dev.tutti.contracts.fuzz to
      org.junit.platform.commons;
}
