package dev.tutti.internal;

/**
 * Says, after a time-out, which ranks had not come to the operation.
 *
 * @param firstMissing the lowest such rank, or -1
 * @param text the finding in words, to append to a message
 */
record Ledger(int firstMissing, String text) {
  /** Asks every rank where it stands; ranks that are alive answer by themselves after a failure. */
  static Ledger gather(Group group, FailureEvent event, long deadlineNanos) {
    if (event.op().isPointToPoint() || event.sequence() == 0) {
      return new Ledger(-1, "");
    }
    int firstMissing = -1;
    StringBuilder text = new StringBuilder();
    for (int r = 0; r < group.size; r++) {
      String progress =
          group.monitor.progressOf(group.name, group.globalRanks.get(r), deadlineNanos);
      String finding = null;
      if (progress == null) {
        finding = "rank " + r + " does not answer";
      } else {
        long issued = Long.parseLong(progress.substring(0, progress.indexOf(' ')));
        if (issued < event.sequence()) {
          finding = "rank " + r + " has not come (its last collective was #" + issued + ")";
        }
      }
      if (finding != null) {
        firstMissing = firstMissing < 0 ? r : firstMissing;
        text.append(text.isEmpty() ? "; " : ", ").append(finding);
      }
    }
    return new Ledger(firstMissing, text.toString());
  }
}
