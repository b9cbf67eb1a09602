package dev.tutti.aeron;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.opentest4j.TestAbortedException;

/** A network namespace with a single link to this one; needs root. */
public final class OtherHost implements AutoCloseable {
  public final String name = "tutti" + ProcessHandle.current().pid();
  private final String wire = "tt" + ProcessHandle.current().pid();
  public final String here = "10.213." + (ProcessHandle.current().pid() & 0xff) + ".1";
  private @Nullable SlowLink slow;

  /** Joins the namespaces by a link, or by a slow one if its rate is positive. */
  public OtherHost(long bytesPerSecond) throws IOException, InterruptedException {
    try {
      run("ip netns add " + name);
      String there = here.substring(0, here.length() - 1) + "2";
      if (bytesPerSecond > 0) {
        slow = new SlowLink(wire, "wire", 0, 1, bytesPerSecond);
        run("ip link set wire netns " + name);
      } else {
        run("ip link add " + wire + " type veth peer name wire netns " + name);
      }
      run("ip address add " + here + "/30 dev " + wire);
      run("ip link set " + wire + " up");
      run("ip -n " + name + " address add " + there + "/30 dev wire");
      run("ip -n " + name + " link set wire up");
      run("ip -n " + name + " link set lo up");
    } catch (IOException e) {
      close();
      String reason = "needs root to make a network namespace: " + e.getMessage();
      System.out.println("skipped: " + reason);
      throw new TestAbortedException(reason, e);
    }
  }

  public void cut() throws IOException, InterruptedException {
    run("ip -n " + name + " link set wire down");
  }

  @Override
  public void close() {
    SlowLink ownLink = slow;
    if (ownLink != null) {
      ownLink.close();
    }
    for (String command : List.of("ip link delete " + wire, "ip netns delete " + name)) {
      try {
        run(command);
      } catch (IOException e) {
        System.out.println("already gone: " + e.getMessage());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static void run(String command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command.split(" ")).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(command + ": " + output.strip());
    }
  }
}
