package dev.tutti.cli.doctor;

import dev.tutti.cli.doctor.CheckResult.Status;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * A summary of the findings of doctor in a few lines: one for each section, and one for each item
 * that needs attention.
 */
final class DoctorSummary {
  private static final String SECTION = "";

  private DoctorSummary() {}

  /**
   * Returns the summary.
   *
   * @param findings all findings
   */
  static List<CheckResult> of(List<CheckResult> findings) {
    Map<String, List<CheckResult>> sections = new LinkedHashMap<>();
    for (CheckResult finding : findings) {
      sections.computeIfAbsent(finding.section(), _ -> new ArrayList<>()).add(finding);
    }
    List<CheckResult> summary = new ArrayList<>();
    sections.forEach(
        (section, all) -> {
          List<CheckResult> well = all.stream().filter(each -> each.status() == Status.OK).toList();
          String text =
              switch (section) {
                case "tutti", "java" -> value(well, "version");
                case "launch" -> value(well, "launcher");
                case "machine" ->
                    String.join(
                        ", ",
                        value(well, "system"),
                        value(well, "cores") + " cores",
                        value(well, "memory"));
                case "settings" -> settings(well);
                case "network" -> names(well, name -> !name.equals("host name"));
                default -> names(well, _ -> true);
              };
          if (!text.isEmpty()) {
            summary.add(CheckResult.ok(SECTION, section, text, ""));
          }
        });
    Map<String, List<String>> names = new LinkedHashMap<>();
    findings.stream()
        .filter(finding -> finding.status() == Status.NOTE)
        .forEach(
            note -> names.computeIfAbsent(reason(note), _ -> new ArrayList<>()).add(note.name()));
    names.forEach(
        (reason, of) ->
            summary.add(
                CheckResult.note(
                    SECTION, String.join(", ", of.stream().distinct().toList()), reason, "")));
    findings.stream()
        .filter(finding -> finding.status() == Status.BROKEN)
        .map(each -> CheckResult.broken(SECTION, each.name(), each.value(), each.detail()))
        .forEach(summary::add);
    return summary;
  }

  private static String names(List<CheckResult> findings, Predicate<String> which) {
    return findings.stream().map(CheckResult::name).filter(which).collect(Collectors.joining(", "));
  }

  private static String value(List<CheckResult> findings, String name) {
    return findings.stream()
        .filter(finding -> finding.name().equals(name))
        .map(CheckResult::value)
        .findFirst()
        .orElse("");
  }

  /**
   * Returns the text of a note, without the jar that it is about, so that equal notes share a line.
   */
  private static String reason(CheckResult note) {
    String detail = note.detail().replaceFirst("; from [^ ]+$", "");
    return detail.isEmpty() ? note.value() : note.value() + ": " + detail;
  }

  private static String settings(List<CheckResult> settings) {
    Predicate<CheckResult> isDefault = setting -> setting.detail().startsWith("from default");
    String changed =
        settings.stream()
            .filter(isDefault.negate())
            .map(setting -> setting.name() + "=" + setting.value())
            .collect(Collectors.joining(", "));
    return settings.size() + (changed.isEmpty() ? ", all at their defaults" : ", set: " + changed);
  }
}
