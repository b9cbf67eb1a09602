import org.jspecify.annotations.NullMarked;

/** JUnit tests that run on every rank, and injected faults. */
@NullMarked
module dev.tutti.testing {
  requires static transitive org.jspecify;
  requires java.management;
  requires transitive dev.tutti;
  requires transitive dev.tutti.store;
  requires transitive dev.tutti.fake;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires transitive org.assertj.core;

  exports dev.tutti.testing;

  uses dev.tutti.spi.BackendProvider;

  opens dev.tutti.testing to
      org.junit.platform.commons;
}
