package dev.tutti.cuda;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;

/** A time without the thread that looks whether work is done, which would hide orders. */
final class Unwatched extends ForwardingTime {
  Unwatched() {
    super(Time.SYSTEM);
  }

  @Override
  public Thread start(String name, Runnable body) {
    return super.start(name, name.equals("tutti-wd") ? () -> {} : body);
  }
}
