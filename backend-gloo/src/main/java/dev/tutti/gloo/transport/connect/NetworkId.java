package dev.tutti.gloo.transport.connect;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/**
 * Identifies the network of a process: two processes with the same number can reach each other's
 * loopback addresses, and two with different numbers cannot.
 */
public final class NetworkId {
  /*
   * On Linux a network is a namespace, whose number is unique as long as the kernel runs. The boot
   * id identifies one run of one kernel.
   */
  private static final Path NAMESPACE = Path.of("/proc/self/ns/net");
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final long MIX = 0x9e3779b97f4a7c15L;

  /** Stands for an unknown network. */
  public static final long UNKNOWN = 0;

  private NetworkId() {}

  /** Returns the number of this process's network, or {@link #UNKNOWN}. */
  public static long own() {
    try {
      String digits = Files.readSymbolicLink(NAMESPACE).toString().replaceAll("[^0-9]", "");
      UUID boot = UUID.fromString(Files.readString(BOOT).strip());
      long id = boot.getMostSignificantBits() ^ boot.getLeastSignificantBits();
      return (id ^ (Long.parseLong(digits) * MIX)) | 1;
    } catch (IOException | IllegalArgumentException | UnsupportedOperationException e) {
      return UNKNOWN;
    }
  }
}
