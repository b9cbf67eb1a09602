import org.jspecify.annotations.NullMarked;

/** Collectives between CPUs over Gloo's wire protocol. */
@NullMarked
module dev.tutti.gloo {
  requires transitive dev.tutti;
  requires dev.tutti.cpu;
  requires dev.tutti.store;
  requires static transitive org.jspecify;

  exports dev.tutti.gloo;
  exports dev.tutti.gloo.spi;

  uses dev.tutti.gloo.spi.GlooDeviceProvider;

  provides dev.tutti.spi.BackendProvider with
      dev.tutti.gloo.GlooProvider;
}
