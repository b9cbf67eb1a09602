package dev.tutti.store.table;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;

/** How stores write keys, on the wire and in files. */
public final class KeyText {
  /** The prefix of every user key. */
  public static final char PREFIX = '/';

  /** Carries the bytes of keys unchanged through strings, whatever they are. */
  public static final Charset BYTES = StandardCharsets.ISO_8859_1;

  private KeyText() {}
}
