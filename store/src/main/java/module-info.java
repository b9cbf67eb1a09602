import org.jspecify.annotations.NullMarked;

/** The stores that need nothing but the JDK: in memory, in a file and over TCP. */
@NullMarked
@SuppressWarnings("module") // those that packages are exported to are compiled later
module dev.tutti.store {
  requires transitive dev.tutti;
  requires dev.tutti.cpu;
  requires static org.jspecify;
  requires jdk.net;

  exports dev.tutti.store;
  exports dev.tutti.store.file;
  exports dev.tutti.store.tcp;
  exports dev.tutti.store.net to
      dev.tutti.aeron,
      dev.tutti.aeron.cluster,
      dev.tutti.cli,
      dev.tutti.cuda,
      dev.tutti.gloo,
      dev.tutti.runtime;
  exports dev.tutti.store.table to
      dev.tutti.aeron,
      dev.tutti.aeron.cluster,
      dev.tutti.fake;
  exports dev.tutti.tls to
      dev.tutti.aeron,
      dev.tutti.aeron.cluster,
      dev.tutti.cli,
      dev.tutti.cuda,
      dev.tutti.gloo,
      dev.tutti.runtime;

  provides dev.tutti.spi.StoreProvider with
      dev.tutti.store.file.FileStoreProvider,
      dev.tutti.store.tcp.TcpStoreProvider;
}
