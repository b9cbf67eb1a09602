import org.jspecify.annotations.NullMarked;

/** Collectives for the JVM: contracts, service interfaces, stores and the runtime between them. */
@NullMarked
@SuppressWarnings("module") // dev.tutti.aeron and dev.tutti.cli are compiled later
module dev.tutti {
  requires static org.jspecify;
  requires static com.google.guice;
  requires static jakarta.inject;
  requires jdk.net;

  exports dev.tutti;
  exports dev.tutti.spi;
  exports dev.tutti.store;
  exports dev.tutti.inject;
  exports dev.tutti.internal to
      dev.tutti.aeron,
      dev.tutti.cli;
  exports dev.tutti.tls to
      dev.tutti.aeron,
      dev.tutti.cli,
      dev.tutti.cuda,
      dev.tutti.gloo;
  exports dev.tutti.cpu.wait to
      dev.tutti.aeron,
      dev.tutti.cuda,
      dev.tutti.gloo;
  exports dev.tutti.store.internal to
      dev.tutti.aeron;

  uses dev.tutti.spi.BackendProvider;
  uses dev.tutti.spi.StoreProvider;
  uses dev.tutti.spi.StreamBlockProvider;

  provides dev.tutti.spi.StoreProvider with
      dev.tutti.store.file.FileStoreProvider,
      dev.tutti.store.tcp.TcpStoreProvider;
}
