package dev.tutti.cli;

import com.google.inject.Inject;
import dev.tutti.Settings;
import dev.tutti.cli.Finding.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Option;

/** Tells what is here and what does not work. */
@Command(
    name = "doctor",
    sortOptions = false,
    description =
        "Tells what is here: Java, machine, network, backends and stores, and all settings.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {"", "The exit code is 1 if something essential does not work."})
final class DoctorCommand implements Callable<Integer> {
  /** Longest line before the detail gets one of its own. */
  private static final int LINE = 120;

  @Option(
      names = "--format",
      paramLabel = "table|json",
      description = "Table, or one JSON object a line. Default: table.")
  private String format = "table";

  private final Terminal terminal;
  private final Settings settings;
  private final RunCommand.Environment environment;

  @Inject
  DoctorCommand(Terminal terminal, Settings settings, RunCommand.Environment environment) {
    this.terminal = terminal;
    this.settings = settings;
    this.environment = environment;
  }

  @Override
  public Integer call() {
    boolean json =
        switch (format.toLowerCase(Locale.ROOT)) {
          case "json" -> true;
          case "table" -> false;
          default ->
              throw new IllegalArgumentException(
                  "--format must be table or json, not '" + format + "'");
        };
    ProviderCheck providers = new ProviderCheck(settings);
    List<Finding> findings = new ArrayList<>();
    findings.add(Finding.ok("tutti", "version", Main.Version.text(), ""));
    findings.addAll(HostCheck.run());
    findings.addAll(providers.run());
    findings.addAll(SettingsCheck.run(settings, providers, environment.variables()));
    if (json) {
      findings.forEach(finding -> terminal.out().println(toJson(finding)));
    } else {
      print(findings);
    }
    return findings.stream().anyMatch(finding -> finding.status() == Status.BROKEN) ? 1 : 0;
  }

  private void print(List<Finding> findings) {
    Ansi ansi = terminal.outIsTerminal() ? Ansi.ON : Ansi.OFF;
    int width = findings.stream().mapToInt(finding -> finding.name().length()).max().orElse(1);
    String section = "";
    for (Finding finding : findings) {
      if (!finding.section().equals(section)) {
        boolean first = section.isEmpty();
        section = finding.section();
        terminal.out().println((first ? "" : "\n") + section);
      }
      String mark =
          switch (finding.status()) {
            case OK -> ansi.string("@|green ok|@    ");
            case NOTE -> ansi.string("@|yellow note|@  ");
            case BROKEN -> ansi.string("@|red BROKEN|@");
          };
      String name = String.format(Locale.ROOT, "%-" + width + "s", finding.name());
      String line = "  " + mark + " " + name + "  " + finding.value();
      boolean fits = line.length() + finding.detail().length() < LINE;
      String separator = fits ? "  " : "\n" + " ".repeat(width + 11);
      terminal
          .out()
          .println(finding.detail().isEmpty() ? line : line + separator + finding.detail());
    }
    List<Finding> broken =
        findings.stream().filter(finding -> finding.status() == Status.BROKEN).toList();
    terminal.out().println();
    terminal
        .out()
        .println(
            broken.isEmpty()
                ? "nothing essential is broken"
                : "broken: "
                    + broken.stream().map(Finding::name).collect(Collectors.joining(", ")));
  }

  private static String toJson(Finding finding) {
    return "{\"section\":"
        + quote(finding.section())
        + ",\"name\":"
        + quote(finding.name())
        + ",\"status\":"
        + quote(finding.status().name().toLowerCase(Locale.ROOT))
        + ",\"value\":"
        + quote(finding.value())
        + ",\"detail\":"
        + quote(finding.detail())
        + "}";
  }

  private static String quote(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
