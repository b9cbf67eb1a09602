import org.jspecify.annotations.NullMarked;

/**
 * Groups for tests: one that only pretends to communicate, and one whose ranks are threads of one
 * JVM.
 */
@NullMarked
module dev.tutti.fake {
  requires transitive dev.tutti;
  requires dev.tutti.cpu;
  requires dev.tutti.store;
  requires static transitive org.jspecify;

  exports dev.tutti.fake;
  exports dev.tutti.fake.simulation;

  uses dev.tutti.spi.BackendProvider;

  provides dev.tutti.spi.BackendProvider with
      dev.tutti.fake.FakeProvider,
      dev.tutti.fake.ThreadedProvider;
}
