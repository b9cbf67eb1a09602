package dev.tutti.cli.reference;

import dev.tutti.Setting;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.StoreProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.TreeMap;

/** The page of settings, generated from what the runtime and all providers declare. */
final class SettingsPage {
  private static final String ALL_GROUPS = "All groups";
  private static final String SEVERAL = "Several parts";
  private static final String EXPERIMENTAL = "Experimental";

  private static final String INTRODUCTION =
      """
      # Settings

      A test writes this page from the code. `./tutti doctor --all` prints the same settings with their
      values here, says which of them are set, and what is wrong with it.

      Settings are environment variables. A program sets them for one group by
      `GroupOptions.withSetting(name, value)`, which overrides the environment. Ranks warn of a variable
      that begins with `TUTTI_` and is no setting.

      Settings whose names begin with `TUTTI_X_` are experimental: they are for measurements and for
      debugging, and any version may change or drop them.

      | type | what it takes |
      |---|---|
      | switch | `1`, `true`, `yes` or `on`; `0`, `false`, `no` or `off` |
      | time | seconds, or with a unit: `90`, `500ms`, `5m`, `1.5h` |
      | bytes | a number, or with `K`, `M` or `G` for powers of 1024: `4096`, `64K`, `16M` |
      | number | a whole number |
      | text | what the description says |
      | secret | text that is never shown |
      """;

  private static final String SCRIPT =
      """

      ## The script `tutti`

      | name | type | default | what it does |
      |---|---|---|---|
      | `TUTTI_CLASS_PATH` | text | – | jars that `./tutti` adds to its class path and to that of its ranks |
      """;

  /** A setting and the names of the parts that read it. */
  private record Row(Setting<?> setting, List<String> readers) {}

  private final Map<String, Row> rows = new TreeMap<>();

  private SettingsPage() {}

  static String text() {
    SettingsPage page = new SettingsPage();
    page.add(ALL_GROUPS, RuntimeSettings.all());
    List<BackendProvider> backends = new ArrayList<>();
    ServiceLoader.load(BackendProvider.class).forEach(backends::add);
    backends.forEach(each -> page.add("Backend *" + each.name() + "*", each.settings()));
    List<StoreProvider> stores = new ArrayList<>();
    ServiceLoader.load(StoreProvider.class).forEach(stores::add);
    stores.forEach(each -> page.add("Store `" + each.scheme() + "://`", each.settings()));
    return page.written();
  }

  private void add(String reader, List<Setting<?>> settings) {
    for (Setting<?> setting : settings) {
      List<String> readers =
          rows.computeIfAbsent(setting.name(), _ -> new Row(setting, new ArrayList<>())).readers();
      if (!readers.contains(reader)) {
        readers.add(reader);
      }
    }
  }

  private String written() {
    Map<String, List<Row>> sections = new LinkedHashMap<>();
    sections.put(ALL_GROUPS, new ArrayList<>());
    sections.put(SEVERAL, new ArrayList<>());
    List<Row> experimental = new ArrayList<>();
    for (Row row : rows.values()) {
      if (row.setting().name().startsWith("TUTTI_X_")) {
        experimental.add(row);
        continue;
      }
      sections.computeIfAbsent(section(row), _ -> new ArrayList<>()).add(row);
    }
    StringBuilder page = new StringBuilder(INTRODUCTION);
    sections.forEach((title, settings) -> write(page, title, settings));
    page.append(SCRIPT);
    write(page, EXPERIMENTAL, experimental);
    return page.toString();
  }

  private static String section(Row row) {
    // Settings that all groups read are listed there alone, whatever else reads them.
    if (row.readers().contains(ALL_GROUPS)) {
      return ALL_GROUPS;
    }
    return row.readers().size() > 1 ? SEVERAL : row.readers().getFirst();
  }

  private static void write(StringBuilder page, String title, List<Row> rows) {
    boolean isSeveral = title.equals(SEVERAL) || title.equals(EXPERIMENTAL);
    page.append("\n## ").append(title).append("\n\n| name | type | default | what it does |");
    page.append(
        isSeveral ? " where it applies |\n|---|---|---|---|---|\n" : "\n|---|---|---|---|\n");
    for (Row row : rows) {
      Setting<?> setting = row.setting();
      String value = setting.defaultText();
      page.append("| `").append(setting.name()).append("` | ").append(type(setting)).append(" | ");
      page.append(value.isEmpty() ? "–" : "`" + value + "`").append(" | ");
      page.append(setting.description().replace("|", "\\|").replace("<", "\\<")).append(" |");
      if (isSeveral) {
        page.append(' ').append(String.join(", ", row.readers().stream().sorted().toList()));
        page.append(" |");
      }
      page.append('\n');
    }
  }

  /** Determines the type of a setting from what its parser makes of the default, or of a number. */
  private static String type(Setting<?> setting) {
    if (setting.secret()) {
      return "secret";
    }
    String sample = setting.defaultText().isEmpty() ? "1" : setting.defaultText();
    Object value;
    try {
      value = setting.parser().apply(sample);
    } catch (IllegalArgumentException e) {
      return "text";
    }
    return switch (value) {
      case Boolean _ -> "switch";
      case Duration _ -> "time";
      case Long _ -> "bytes";
      case Integer _ -> "number";
      default -> "text";
    };
  }
}
