import org.jspecify.annotations.NullMarked;

/** Metrics of process groups for Micrometer. */
@NullMarked
module dev.tutti.micrometer {
  requires transitive dev.tutti;
  requires transitive micrometer.core;
  requires static org.jspecify;

  exports dev.tutti.micrometer;
}
