package dev.tutti.gloo.topology;

import java.io.IOException;
import java.nio.file.Path;

/** Creates its file in a directory, prints the file's name, and waits to be killed. */
final class HostProbeFileMain {
  private HostProbeFileMain() {}

  public static void main(String[] args) throws IOException {
    HostProbeFile beacon = HostProbeFile.light(Path.of(args[0]));
    System.out.println(beacon.name());
    while (System.in.read() >= 0) {
      // Nothing writes to the input.
    }
  }
}
