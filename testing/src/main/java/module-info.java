import org.jspecify.annotations.NullMarked;

/**
 * JUnit support for distributed code, and the contract suites for stores, backends and stream
 * blocks.
 */
@NullMarked
module dev.tutti.testing {
  requires static transitive org.jspecify;
  requires java.management;
  requires jdk.management;
  requires transitive dev.tutti;
  requires transitive dev.tutti.store;
  requires transitive dev.tutti.fake;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires transitive org.assertj.core;

  exports dev.tutti.testing;
  exports dev.tutti.testing.fuzz;
  exports dev.tutti.testing.history;

  uses dev.tutti.spi.BackendProvider;

  opens dev.tutti.testing to
      org.junit.platform.commons;
  opens dev.tutti.testing.fuzz to
      org.junit.platform.commons;
}
