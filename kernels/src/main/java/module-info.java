import org.jspecify.annotations.NullMarked;

/**
 * The CUDA kernels of Tutti, in compiled form, and their descriptions for code that launches them.
 */
@NullMarked
module dev.tutti.kernels {
  requires transitive dev.tutti;
  requires static transitive org.jspecify;

  exports dev.tutti.kernels;
}
