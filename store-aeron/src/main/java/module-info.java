import org.jspecify.annotations.NullMarked;

/** The store over Aeron: shared memory on a host, UDP between hosts. */
@NullMarked
module dev.tutti.aeron {
  requires transitive dev.tutti;
  requires transitive dev.tutti.store;
  requires dev.tutti.cpu;
  requires static transitive org.jspecify;
  requires io.aeron.client;
  requires io.aeron.driver;
  requires io.aeron.archive;
  requires io.aeron.cluster;
  requires org.agrona;
  requires jdk.net;

  exports dev.tutti.aeron;

  provides dev.tutti.spi.StoreProvider with
      dev.tutti.aeron.AeronClusterProvider,
      dev.tutti.aeron.AeronStoreProvider;
}
