package dev.tutti.cli.bench;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.runtime.settings.Providers;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Locale;
import java.util.stream.Stream;

/** The values that the options of {@code tutti bench} are limited to, for shells to complete. */
final class BenchChoices {
  private BenchChoices() {}

  /** What can be measured. */
  static final class Operations implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Stream.concat(Arrays.stream(BenchOp.values()).map(BenchOp::label), Stream.of("all"))
          .iterator();
    }
  }

  /** The names of the backends on the class path. */
  static final class Backends implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Providers.backends().keySet().stream().sorted().iterator();
    }
  }

  /** The names of element types. */
  static final class ElementTypes implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Arrays.stream(DType.values()).map(DType::label).iterator();
    }
  }

  /** The names of reduce operations. */
  static final class ReduceOps implements Iterable<String> {
    @Override
    public Iterator<String> iterator() {
      return Arrays.stream(ReduceOp.Kind.values())
          .filter(kind -> kind != ReduceOp.Kind.PREMUL_SUM)
          .map(kind -> kind.name().toLowerCase(Locale.ROOT))
          .iterator();
    }
  }
}
