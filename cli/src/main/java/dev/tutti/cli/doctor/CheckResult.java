package dev.tutti.cli.doctor;

/**
 * One thing that {@code tutti doctor} found.
 *
 * @param section what it is about
 * @param name of what
 * @param status whether it is as it should be
 * @param value what was found
 * @param detail more on it, or why it is not as it should be; may be empty
 */
record CheckResult(String section, String name, Status status, String value, String detail) {
  /** Rates a finding. */
  enum Status {
    /** As it should be, or neither good nor bad. */
    OK,
    /** Not usable or not good here, but nothing that stops everything. */
    NOTE,
    /** Something essential does not work. */
    BROKEN
  }

  static CheckResult ok(String section, String name, String value, String detail) {
    return new CheckResult(section, name, Status.OK, value, detail);
  }

  static CheckResult note(String section, String name, String value, String detail) {
    return new CheckResult(section, name, Status.NOTE, value, detail);
  }

  static CheckResult broken(String section, String name, String value, String detail) {
    return new CheckResult(section, name, Status.BROKEN, value, detail);
  }
}
