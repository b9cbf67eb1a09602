package dev.tutti.cli.process;

import dev.tutti.Setting;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The converters of arguments to times, files and whole numbers. */
public final class Converters {
  private Converters() {}

  /** Registers all converters with a command line and its subcommands. */
  public static void register(CommandLine line) {
    line.registerConverter(Duration.class, Converters::duration);
    line.registerConverter(Path.class, Converters::path);
    line.registerConverter(int.class, wholeNumber(Integer::valueOf));
    line.registerConverter(Integer.class, wholeNumber(Integer::valueOf));
    line.registerConverter(long.class, wholeNumber(Long::valueOf));
  }

  /** Converts a time in the format of settings. */
  private static Duration duration(String text) {
    try {
      return Setting.parseDuration(text);
    } catch (IllegalArgumentException e) {
      throw new TypeConversionException("'" + text + "': " + e.getMessage());
    }
  }

  /** Converts a file or folder, which must have a name. */
  private static Path path(String text) {
    if (text.isEmpty()) {
      throw new TypeConversionException("'' is no file or folder");
    }
    try {
      return Path.of(text);
    } catch (InvalidPathException e) {
      throw new TypeConversionException("'" + text + "': " + e.getReason());
    }
  }

  private static <T extends Number> ITypeConverter<T> wholeNumber(Function<String, T> parser) {
    return text -> {
      try {
        return parser.apply(text);
      } catch (NumberFormatException e) {
        String what =
            text.matches("[-+]?\\d+") ? "is too large or too small" : "is no whole number";
        throw new TypeConversionException("'" + text + "' " + what);
      }
    };
  }
}
