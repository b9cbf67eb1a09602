package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.Settings;
import dev.tutti.StoreConnectionException;
import dev.tutti.store.net.Loopback;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what is said about hosts whose networks are unusual. */
@Timeout(300)
class BindAddressTest {
  private static Settings settings(String name, String value) {
    return Settings.ofEnvironment(Map.of(name, value));
  }

  /** Starts a JVM that runs a class of this test, and returns what it prints. */
  private static List<String> printed(List<String> inside, Class<?> program, String... options)
      throws Exception {
    List<String> command = new ArrayList<>(inside);
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
    Process jvm = new ProcessBuilder(command).redirectErrorStream(true).start();
    List<String> lines = jvm.inputReader().lines().toList();
    assertThat(jvm.waitFor()).as(lines.toString()).isZero();
    return lines;
  }

  /** Returns the command that runs another in a network namespace without any address. */
  private static List<String> inNetwork(String setUp) throws IOException {
    assumeTrue((int) Files.getAttribute(Path.of("/proc/self"), "unix:uid") == 0, "needs root");
    return List.of("unshare", "-n", "sh", "-c", setUp + " exec \"$@\"", "sh");
  }

  /** Names two interfaces, of which the first is there. */
  static final class NamedInterfaces {
    public static void main(String[] arguments) {
      try {
        System.out.println(BindAddress.choose(settings("GLOO_SOCKET_IFNAME", "lo,none0")));
      } catch (IOException e) {
        System.out.println(e.getMessage());
      }
    }
  }

  @Test
  void anInterfaceThatDoesNotExistIsToldFromOneWithoutAnAddress() throws Exception {
    assertThat(printed(inNetwork(""), NamedInterfaces.class))
        .singleElement()
        .asString()
        .isEqualTo(
            "GLOO_SOCKET_IFNAME='lo,none0': lo has no address, none0 does not exist; usable"
                + " interfaces are none");
  }

  @Test
  void whiteSpaceAroundTheHostOfTheStoreDoesNotCount() throws IOException {
    assertThat(BindAddress.choose(settings("MASTER_ADDR", " 127.0.0.1\r")).reason())
        .isEqualTo("on the route to MASTER_ADDR=127.0.0.1");
  }

  /** Serves a store and uses it, on a host that may have no 127.0.0.1. */
  static final class OwnStore {
    public static void main(String[] arguments) {
      TcpStoreOptions served = TcpStoreOptions.of("ignored", 0).withServer(true);
      try (TcpStore store = new TcpStore(served)) {
        store.set("key", "value");
        System.out.println(Loopback.host() + " " + store.getString("key"));
      }
    }
  }

  @Test
  void aRankReachesItsOwnStoreByTheLoopbackAddressThatTheHostHas() throws Exception {
    assertThat(printed(List.of(), OwnStore.class)).endsWith("127.0.0.1 value");
    assumeTrue(Files.exists(Path.of("/proc/sys/net/ipv6")), "this system has no IPv6");
    String setUp = "ip link set lo up && ip addr del 127.0.0.1/8 dev lo &&";
    assertThat(printed(inNetwork(setUp), OwnStore.class)).endsWith("::1 value");
  }

  /** Names hosts that a JVM without IPv6 cannot reach. */
  static final class WithoutIpv6 {
    public static void main(String[] arguments) {
      try {
        BindAddress.choose(settings("MASTER_ADDR", "::1"));
      } catch (IOException e) {
        System.out.println(e.getMessage());
      }
      try (TcpStore store = new TcpStore("::1", 1)) {
        System.out.println(store);
      } catch (StoreConnectionException e) {
        System.out.println(e.getMessage());
      }
    }
  }

  @Test
  void aJvmWithoutIpv6IsToldSo() throws Exception {
    String none =
        " is an IPv6 address, but this JVM has no IPv6 (java.net.preferIPv4Stack, or the host has"
            + " it off)";
    assertThat(printed(List.of(), WithoutIpv6.class, "-Djava.net.preferIPv4Stack=true"))
        .containsExactly("MASTER_ADDR=::1" + none, "[0:0:0:0:0:0:0:1]:1" + none);
  }
}
