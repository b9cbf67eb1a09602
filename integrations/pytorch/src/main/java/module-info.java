import org.jspecify.annotations.NullMarked;

/** Data-parallel training with the Java bindings of PyTorch. */
@NullMarked
module dev.tutti.pytorch {
  requires transitive dev.tutti.gradients;
  requires transitive org.bytedeco.pytorch;
  requires static org.jspecify;

  exports dev.tutti.pytorch;
}
