package dev.tutti.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A check of JSON against the parts of JSON Schema that the docs use. */
public final class JsonSchema {
  private JsonSchema() {}

  /** Checks type, required, properties, additionalProperties, items and enum. */
  public static List<String> misfits(
      String where, @Nullable Object value, @Nullable Object schema) {
    List<String> all = new ArrayList<>();
    if (!(schema instanceof Map<?, ?> rules)) {
      return all;
    }
    List<?> types =
        rules.get("type") instanceof List<?> several
            ? several
            : rules.get("type") == null ? List.of() : List.of(rules.get("type"));
    String type =
        switch (value) {
          case null -> "null";
          case String _ -> "string";
          case Boolean _ -> "boolean";
          case Long _ -> "integer";
          case Number _ -> "number";
          case List<?> _ -> "array";
          default -> "object";
        };
    if (!types.isEmpty()
        && !types.contains(type)
        && !(type.equals("integer") && types.contains("number"))) {
      all.add(where + " is of type " + type);
    }
    if (rules.get("enum") instanceof List<?> values && !values.contains(value)) {
      all.add(where + " is " + value);
    }
    if (value instanceof List<?> list) {
      list.forEach(item -> all.addAll(misfits(where + "[]", item, rules.get("items"))));
    }
    if (value instanceof Map<?, ?> map) {
      if (rules.get("required") instanceof List<?> required) {
        required.stream()
            .filter(key -> !map.containsKey(key))
            .forEach(key -> all.add(where + " has no " + key));
      }
      Map<?, ?> properties = rules.get("properties") instanceof Map<?, ?> given ? given : Map.of();
      map.forEach(
          (key, held) -> {
            Object rule = properties.get(key);
            if (rule == null && Boolean.FALSE.equals(rules.get("additionalProperties"))) {
              all.add(where + " has " + key);
            }
            all.addAll(
                misfits(
                    where + "." + key,
                    held,
                    rule == null ? rules.get("additionalProperties") : rule));
          });
    }
    return all;
  }
}
