package dev.tutti.runtime.model;

/** A set of numbers. */
public final class LongSet {
  private long[] table = new long[1 << 12];
  private int size;

  /** Adds a number; returns whether it was not there. */
  public boolean add(long number) {
    if (4L * size > 3L * table.length) {
      long[] old = table;
      table = new long[2 * old.length];
      for (long each : old) {
        table[place(each)] = each;
      }
    }
    int place = place(number);
    boolean isNew = table[place] != number;
    table[place] = number;
    size += isNew ? 1 : 0;
    return isNew;
  }

  /** Returns where a number is, or belongs; 0 marks what is free. */
  private int place(long number) {
    int place = (int) number & (table.length - 1);
    while (table[place] != 0 && table[place] != number) {
      place = (place + 1) & (table.length - 1);
    }
    return place;
  }
}
