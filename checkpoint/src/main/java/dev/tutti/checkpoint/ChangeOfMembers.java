package dev.tutti.checkpoint;

/** Leads out of the program of a generation that ends because its members change. */
final class ChangeOfMembers extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ChangeOfMembers() {
    super("the members of the group change; let this exception pass", null, false, false);
  }
}
