package dev.tutti.spark;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.spi.HostPort;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStoreServer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.URI;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.jspecify.annotations.Nullable;

/**
 * The rendezvous of the tasks of a barrier stage.
 *
 * <p>Rank 0 starts the server; then all tasks exchange one line through Spark. The line of rank 0
 * holds the port and the token, or the reason why it cannot serve, so that all tasks report the
 * same; the lines of the others are empty. The host is the address that Spark has for the executor
 * of rank 0.
 */
final class BarrierRendezvous {
  private static final Logger LOG = System.getLogger(BarrierRendezvous.class.getName());
  private static final String FAILED = "failed ";
  private static final String MASTER_ADDR = "MASTER_ADDR";
  private static final int TOKEN_BYTES = 32;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final BarrierTaskContext task;
  private final int rank;
  private final int size;

  BarrierRendezvous(BarrierTaskContext task) {
    this.task = task;
    this.rank = task.partitionId();
    this.size = task.getTaskInfos().length;
  }

  /**
   * Meets the other tasks, which also call this.
   *
   * @param options the options as given by the program
   * @throws IllegalStateException if not all tasks of the stage take part
   */
  ProcessGroup join(GroupOptions options) {
    AllTasks.requireIn(task);
    Settings settings = SparkSettings.over(options.settings(), SparkEnv.get().conf());
    boolean hasToken = settings.get(JobToken.SETTING).isSet();
    String line = "";
    TcpStoreServer server = null;
    if (rank == 0) {
      String token = hasToken ? "" : newToken();
      try {
        server = BarrierStore.serve(withToken(settings, token));
        line = server.port() + " " + token;
      } catch (RuntimeException e) {
        line = FAILED + e.getMessage();
      }
    }
    return join(options, settings, exchange(line, server), server);
  }

  private String exchange(String line, @Nullable TcpStoreServer server) {
    boolean exchanged = false;
    try {
      String told = task.allGather(line)[0];
      if (told.startsWith(FAILED)) {
        throw new IllegalStateException(
            "rank 0 cannot serve the store: " + told.substring(FAILED.length()));
      }
      exchanged = true;
      return told;
    } finally {
      if (!exchanged && server != null) {
        server.close();
      }
    }
  }

  private ProcessGroup join(
      GroupOptions options, Settings own, String told, @Nullable TcpStoreServer server) {
    int space = told.indexOf(' ');
    int port = Integer.parseInt(told.substring(0, space));
    String host = HostPort.parse(task.getTaskInfos()[0].address()).host();
    HostPort address = new HostPort(host, port);
    String prefix = task.stageId() + "." + task.stageAttemptNumber();
    URI url = URI.create(BarrierStoreProvider.SCHEME + "://" + address + "/" + prefix);
    if (rank == 0) {
      LOG.log(
          Level.INFO, "tutti status --at tcp://{0} --prefix {1} shows this stage", address, prefix);
    }
    Settings settings = withToken(own, told.substring(space + 1));
    if (settings.text(MASTER_ADDR).isEmpty()) {
      // Passes Gloo the host's address that the others can reach.
      settings = settings.with(MASTER_ADDR, host);
    }
    return TaskGroup.join(
        task,
        new BarrierStore(url, rank, server),
        options
            .withSettings(settings)
            .withInitMethod(url.toString())
            .withRank(rank)
            .withSize(size));
  }

  /**
   * Adds a token that was received through Spark; a token that all tasks have in their settings is
   * never sent.
   */
  private static Settings withToken(Settings settings, String token) {
    return token.isEmpty() ? settings : settings.with(JobToken.SETTING, token);
  }

  private static String newToken() {
    byte[] secret = new byte[TOKEN_BYTES];
    RANDOM.nextBytes(secret);
    return HexFormat.of().formatHex(secret);
  }
}
