import org.jspecify.annotations.NullMarked;

/**
 * The parts that backends for CPU tensors share: reductions, sums of sparse tensors, memory and
 * waits.
 */
@NullMarked
@SuppressWarnings("module") // those that packages are exported to are compiled later
module dev.tutti.cpu {
  requires transitive dev.tutti;
  requires static org.jspecify;

  exports dev.tutti.cpu;
  exports dev.tutti.cpu.memory to
      dev.tutti.cli,
      dev.tutti.cuda,
      dev.tutti.gloo,
      dev.tutti.runtime;
  exports dev.tutti.cpu.wait to
      dev.tutti.aeron,
      dev.tutti.aeron.cluster,
      dev.tutti.cli,
      dev.tutti.cuda,
      dev.tutti.fake,
      dev.tutti.gloo,
      dev.tutti.runtime,
      dev.tutti.store;

  provides dev.tutti.spi.TensorAllocator with
      dev.tutti.cpu.memory.SharedHeapAllocator;
}
