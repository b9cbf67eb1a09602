package dev.tutti.cli.doctor;

/**
 * One finding of {@code tutti doctor}.
 *
 * @param section the area of the finding
 * @param name the item that was checked
 * @param status the rating
 * @param value what was found
 * @param detail more about the value, or why it is not as it should be; may be empty
 */
record CheckResult(String section, String name, Status status, String value, String detail) {
  /** The rating of a finding. */
  enum Status {
    /** As it should be, or neither good nor bad. */
    OK,
    /** Not usable or not good here, but nothing that prevents everything. */
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
