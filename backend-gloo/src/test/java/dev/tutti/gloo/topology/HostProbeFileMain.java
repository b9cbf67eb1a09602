package dev.tutti.gloo.topology;

import java.io.IOException;
import java.nio.file.Path;

/** Makes its file in a directory, says its name, and waits to be killed. */
final class HostProbeFileMain {
  private HostProbeFileMain() {}

  public static void main(String[] args) throws IOException {
    HostProbeFile beacon = HostProbeFile.light(Path.of(args[0]));
    System.out.println(beacon.name());
    while (System.in.read() >= 0) {
      // Nobody writes.
    }
  }
}
