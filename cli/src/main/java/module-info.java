import org.jspecify.annotations.NullMarked;

/** The command line: run, bench, store, doctor, trace, status, checkpoint. */
@NullMarked
module dev.tutti.cli {
  requires static org.jspecify;
  requires dev.tutti;
  requires dev.tutti.aeron;
  requires dev.tutti.aeron.cluster;
  requires dev.tutti.checkpoint;
  requires dev.tutti.cpu;
  requires dev.tutti.runtime;
  requires dev.tutti.store;
  requires info.picocli;
  requires me.tongfei.progressbar;
  requires org.jfree.jfreechart;
  requires VectorGraphics2D;
  requires java.desktop;
  requires java.management;
  requires jdk.httpserver;
  requires jdk.jfr;
  requires jdk.management;
  requires jdk.unsupported;

  uses dev.tutti.spi.BackendProvider;
  uses dev.tutti.spi.StoreProvider;
  uses dev.tutti.spi.StreamBlockProvider;

  opens dev.tutti.cli to
      info.picocli;
  opens dev.tutti.cli.bench to
      info.picocli;
  opens dev.tutti.cli.checkpoint to
      info.picocli;
  opens dev.tutti.cli.doctor to
      info.picocli;
  opens dev.tutti.cli.help to
      info.picocli;
  opens dev.tutti.cli.run to
      info.picocli;
  opens dev.tutti.cli.status to
      info.picocli;
  opens dev.tutti.cli.store to
      info.picocli;
  opens dev.tutti.cli.token to
      info.picocli;
  opens dev.tutti.cli.trace to
      info.picocli;
}
