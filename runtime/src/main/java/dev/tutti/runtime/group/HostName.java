package dev.tutti.runtime.group;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Finds out which ranks run on the same host. */
final class HostName {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

  private HostName() {}

  /** Returns the first rank of a group that runs on this host. */
  static int firstOn(ProcessGroup group) {
    List<String> hosts = group.allGatherObject(own(), Codec.STRING);
    return hosts.indexOf(hosts.get(group.rank()));
  }

  private static String own() {
    try {
      return Files.isReadable(BOOT)
          ? Files.readString(BOOT).strip()
          : InetAddress.getLocalHost().getHostName();
    } catch (IOException e) {
      throw new IllegalStateException("cannot determine a name that identifies this host: " + e, e);
    }
  }
}
