import org.jspecify.annotations.NullMarked;

/** Small programs to copy, from a single JVM to many processes. */
@NullMarked
module dev.tutti.examples {
  requires dev.tutti;
  requires dev.tutti.cuda;
  requires dev.tutti.fake;
  requires static org.jspecify;
}
