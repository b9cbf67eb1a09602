import org.jspecify.annotations.NullMarked;

/** The store over Aeron Cluster, replicated among several members. */
@NullMarked
module dev.tutti.aeron.cluster {
  requires transitive dev.tutti.aeron;
  requires dev.tutti.cpu;
  requires static transitive org.jspecify;
  requires io.aeron.client;
  requires io.aeron.driver;
  requires io.aeron.archive;
  requires io.aeron.cluster;
  requires org.agrona;

  exports dev.tutti.aeron.cluster;

  provides dev.tutti.spi.StoreProvider with
      dev.tutti.aeron.cluster.AeronClusterProvider;
}
