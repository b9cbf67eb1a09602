import org.jspecify.annotations.NullMarked;

/** The CUDA kernels of Tutti: compiled, and described for who launches them. */
@NullMarked
module dev.tutti.kernels {
  requires transitive dev.tutti;
  requires static transitive org.jspecify;

  exports dev.tutti.kernels;
}
