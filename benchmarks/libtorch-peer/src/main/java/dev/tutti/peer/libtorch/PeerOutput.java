package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * Writes each line of output with one system call, so that libtorch's own output cannot end up
 * inside it.
 */
final class PeerOutput {
  private static final int LONGEST_LINE = 4000;
  private final FileOutputStream out = new FileOutputStream(FileDescriptor.out);

  synchronized void line(String text) {
    String flat = text.replace('\n', ' ').replace('\r', ' ');
    String bounded = flat.length() > LONGEST_LINE ? flat.substring(0, LONGEST_LINE) : flat;
    try {
      out.write((bounded + "\n").getBytes(UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String messageOf(Throwable failure) {
    String message = failure.getMessage();
    String first = message == null ? "" : message.lines().findFirst().orElse("");
    return failure.getClass().getSimpleName() + ": " + first;
  }
}
