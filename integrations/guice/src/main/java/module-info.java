import org.jspecify.annotations.NullMarked;

/** Binds a process group for programs that use Guice. */
@NullMarked
module dev.tutti.guice {
  requires transitive dev.tutti;
  requires transitive com.google.guice;
  requires static transitive org.jspecify;

  exports dev.tutti.guice;
}
