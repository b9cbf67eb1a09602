package dev.tutti.cli.process;

import java.util.function.Function;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * A converter for whole numbers.
 *
 * @param <T> the type of the numbers
 */
public final class WholeNumberConverter<T extends Number> implements ITypeConverter<T> {
  private final Function<String, T> parser;

  /**
   * Creates a converter.
   *
   * @param parser parses a number, or throws a {@code NumberFormatException}
   */
  public WholeNumberConverter(Function<String, T> parser) {
    this.parser = parser;
  }

  @Override
  public T convert(String text) {
    try {
      return parser.apply(text);
    } catch (NumberFormatException e) {
      String what = text.matches("[-+]?\\d+") ? "is too large or too small" : "is no whole number";
      throw new TypeConversionException("'" + text + "' " + what);
    }
  }
}
