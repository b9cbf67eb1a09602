import org.jspecify.annotations.NullMarked;

/** LightGBM training on several ranks, over a process group. */
@NullMarked
module dev.tutti.lightgbm {
  requires transitive dev.tutti;
  requires lightgbmlib;
  requires static org.jspecify;

  exports dev.tutti.lightgbm;
}
