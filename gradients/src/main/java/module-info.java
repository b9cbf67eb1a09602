import org.jspecify.annotations.NullMarked;

/** Data-parallel training: gradients in buckets, hooks that reduce them, sharded optimizers. */
@NullMarked
module dev.tutti.gradients {
  requires transitive dev.tutti;
  requires static transitive org.jspecify;
  requires static jdk.jfr;

  exports dev.tutti.gradients;
  exports dev.tutti.gradients.hook;
  exports dev.tutti.gradients.optimizer;
}
