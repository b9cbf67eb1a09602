import org.jspecify.annotations.NullMarked;

/** What only this project's own tests use. */
@NullMarked
module dev.tutti.testkit {
  requires static org.jspecify;
  requires java.management;
  requires jdk.management;
  requires org.opentest4j;
  requires transitive org.junit.platform.launcher;

  exports dev.tutti.testkit;
}
