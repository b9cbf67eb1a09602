package dev.tutti.runtime.view;

/** Why a rank says nothing about itself. */
public enum Silence {
  /** The rank has joined, but does not answer. */
  NO_ANSWER("does not answer"),
  /** The rank has closed the group of all ranks. */
  LEFT("left"),
  /** The rank left no sign, as is the case for ranks of PyTorch, or has not come yet. */
  NOT_JOINED("has not joined"),
  /** There is no record of the rank. */
  NO_RECORD("left no record");

  private final String text;

  Silence(String text) {
    this.text = text;
  }

  @Override
  public String toString() {
    return text;
  }
}
