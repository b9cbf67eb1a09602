package dev.tutti.fake.simulation;

/** Ends a thread of a simulated process that has ended. */
final class ProcessGone extends Error {
  private static final long serialVersionUID = 1;

  ProcessGone() {
    super("the simulated process has ended", null, false, false);
  }
}
