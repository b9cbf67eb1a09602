package dev.tutti.examples;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.List;

/** Runs a program in this JVM and returns the lines that it prints. */
public final class Printed {
  private Printed() {}

  /** The main method of a program. */
  @FunctionalInterface
  public interface Program {
    void main(String[] args) throws Exception;
  }

  /** Runs a program; nothing else may print in the meantime. */
  public static List<String> by(Program program, String... args) throws Exception {
    PrintStream before = System.out;
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    System.setOut(new PrintStream(bytes, true, UTF_8));
    try {
      program.main(args);
    } finally {
      System.setOut(before);
    }
    return bytes.toString(UTF_8).lines().toList();
  }
}
