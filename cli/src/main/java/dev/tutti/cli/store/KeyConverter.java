package dev.tutti.cli.store;

import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** A converter for keys, which refuses what an unset variable of a shell leaves. */
final class KeyConverter implements ITypeConverter<String> {
  @Override
  public String convert(String text) {
    if (text.isEmpty()) {
      throw new TypeConversionException("'' is no key");
    }
    return text;
  }
}
