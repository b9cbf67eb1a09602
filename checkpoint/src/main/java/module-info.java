import org.jspecify.annotations.NullMarked;

/** Checkpoints: all ranks save and load together, on any number of ranks. */
@NullMarked
module dev.tutti.checkpoint {
  requires transitive dev.tutti;
  requires static transitive org.jspecify;
  requires static jdk.unsupported;

  exports dev.tutti.checkpoint;
}
