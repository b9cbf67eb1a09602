import org.jspecify.annotations.NullMarked;

/** Collectives for the JVM: the contracts, and what backends, stores and the runtime implement. */
@NullMarked
@SuppressWarnings("module") // those that read JSON are compiled later
module dev.tutti {
  requires static transitive org.jspecify;

  exports dev.tutti;
  exports dev.tutti.dlpack;
  exports dev.tutti.json to
      dev.tutti.checkpoint,
      dev.tutti.cli,
      dev.tutti.runtime;
  exports dev.tutti.spi;
  exports dev.tutti.state;

  uses dev.tutti.spi.DeviceTensors;
  uses dev.tutti.spi.ProcessGroupFactory;
  uses dev.tutti.spi.TensorAllocator;
}
