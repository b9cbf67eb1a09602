import org.jspecify.annotations.NullMarked;

/** The store over Aeron: shared memory on a host, UDP between hosts. */
@NullMarked
@SuppressWarnings("module") // the one that packages are exported to is compiled later
module dev.tutti.aeron {
  requires transitive dev.tutti;
  requires transitive dev.tutti.store;
  requires dev.tutti.cpu;
  requires static transitive org.jspecify;
  requires io.aeron.client;
  requires io.aeron.driver;
  requires org.agrona;
  requires jdk.net;

  exports dev.tutti.aeron;
  exports dev.tutti.aeron.driver to
      dev.tutti.aeron.cluster;
  exports dev.tutti.aeron.server to
      dev.tutti.aeron.cluster;
  exports dev.tutti.aeron.session to
      dev.tutti.aeron.cluster;
  exports dev.tutti.aeron.wire to
      dev.tutti.aeron.cluster;

  provides dev.tutti.spi.StoreProvider with
      dev.tutti.aeron.AeronStoreProvider;
}
