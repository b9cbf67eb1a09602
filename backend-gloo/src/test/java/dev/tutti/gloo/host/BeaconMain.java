package dev.tutti.gloo.host;

import java.io.IOException;
import java.nio.file.Path;

/** Makes its file in a directory, says its name, and waits to be killed. */
final class BeaconMain {
  private BeaconMain() {}

  public static void main(String[] args) throws IOException {
    Beacon beacon = Beacon.light(Path.of(args[0]));
    System.out.println(beacon.name());
    while (System.in.read() >= 0) {
      // Nobody writes.
    }
  }
}
