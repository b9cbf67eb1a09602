import org.jspecify.annotations.NullMarked;

/** An example of a third-party backend, whose collectives all go through rank 0. */
@NullMarked
module org.example.central {
  requires dev.tutti;
  requires dev.tutti.cpu;
  requires static org.jspecify;

  exports org.example.central;

  provides dev.tutti.spi.BackendProvider with
      org.example.central.CentralProvider;
}
