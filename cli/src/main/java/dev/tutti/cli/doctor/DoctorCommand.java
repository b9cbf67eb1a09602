package dev.tutti.cli.doctor;

import dev.tutti.Settings;
import dev.tutti.cli.doctor.CheckResult.Status;
import dev.tutti.cli.help.Version;
import dev.tutti.cli.process.Terminal;
import dev.tutti.json.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Option;

/** The command doctor, which reports what is present on this host and what does not work. */
@Command(
    name = "doctor",
    sortOptions = false,
    description =
        "Checks the environment: Java, machine, network, backends, stores, launcher and settings.",
    descriptionHeading = "%n",
    optionListHeading = "%nOptions:%n",
    footer = {"", "The exit code is 1 if something essential does not work."})
public final class DoctorCommand implements Callable<Integer> {
  private enum Format {
    table,
    json
  }

  @Option(
      names = "--format",
      paramLabel = "table|json",
      description = "Output: a table, or one JSON object per line. Default: table.")
  private Format format = Format.table;

  @Option(
      names = "--all",
      description = "List all checks, including every setting, instead of a summary.")
  private boolean all;

  private final Terminal terminal;
  private final Settings settings;
  private final Map<String, String> environment;

  public DoctorCommand(Terminal terminal, Settings settings, Map<String, String> environment) {
    this.terminal = terminal;
    this.settings = settings;
    this.environment = environment;
  }

  @Override
  public Integer call() {
    ProviderCheck providers = new ProviderCheck(settings);
    List<CheckResult> findings = new ArrayList<>();
    findings.add(CheckResult.ok("tutti", "version", Version.text(), ""));
    findings.addAll(HostCheck.run());
    findings.addAll(providers.run());
    findings.addAll(LaunchCheck.run(settings));
    findings.addAll(SettingsCheck.run(settings, providers, environment));
    if (format == Format.json) {
      findings.forEach(finding -> terminal.out().println(toJson(finding)));
    } else {
      print(all ? findings : DoctorSummary.of(findings));
      printEnd(findings);
    }
    return findings.stream().anyMatch(finding -> finding.status() == Status.BROKEN) ? 1 : 0;
  }

  private void print(List<CheckResult> findings) {
    Map<String, List<CheckResult>> sections = new LinkedHashMap<>();
    for (CheckResult finding : findings) {
      sections.computeIfAbsent(finding.section(), _ -> new ArrayList<>()).add(finding);
    }
    boolean first = true;
    for (Map.Entry<String, List<CheckResult>> section : sections.entrySet()) {
      if (!section.getKey().isEmpty()) {
        terminal.out().println((first ? "" : "\n") + section.getKey());
      }
      first = false;
      printSection(section.getValue());
    }
  }

  private void printSection(List<CheckResult> findings) {
    Wrapper wrapper = new Wrapper(terminal.columns());
    int width = findings.stream().mapToInt(finding -> finding.name().length()).max().orElse(1);
    int indent = width + 11;
    for (CheckResult finding : findings) {
      String name = String.format(Locale.ROOT, "%-" + width + "s", finding.name());
      String head = "  " + mark(finding.status()) + " " + name + "  ";
      // Most settings are at their defaults.
      String detail = finding.detail().replaceFirst("^from default: ", "");
      int together = indent + finding.value().length() + 2 + detail.length();
      if (!detail.isEmpty() && together <= terminal.columns()) {
        terminal.out().println(head + finding.value() + "  " + detail);
        continue;
      }
      terminal.out().println(head + wrapper.wrap(finding.value(), indent));
      if (!detail.isEmpty()) {
        terminal.out().println(" ".repeat(indent) + wrapper.wrap(detail, indent));
      }
    }
  }

  private String mark(Status status) {
    Ansi ansi = terminal.outIsTerminal() ? Ansi.ON : Ansi.OFF;
    return switch (status) {
      case OK -> ansi.string("@|green ok|@    ");
      case NOTE -> ansi.string("@|yellow note|@  ");
      case BROKEN -> ansi.string("@|red BROKEN|@");
    };
  }

  private void printEnd(List<CheckResult> findings) {
    List<CheckResult> broken =
        findings.stream().filter(finding -> finding.status() == Status.BROKEN).toList();
    terminal.out().println();
    terminal
        .out()
        .println(
            broken.isEmpty()
                ? "nothing essential is broken"
                    + (all ? "" : "; for all checks: tutti doctor --all")
                : "broken: "
                    + broken.stream().map(CheckResult::name).collect(Collectors.joining(", ")));
  }

  private static String toJson(CheckResult finding) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("section", finding.section());
    fields.put("name", finding.name());
    fields.put("status", finding.status().name().toLowerCase(Locale.ROOT));
    fields.put("value", finding.value());
    fields.put("detail", finding.detail());
    return Json.write(fields);
  }
}
