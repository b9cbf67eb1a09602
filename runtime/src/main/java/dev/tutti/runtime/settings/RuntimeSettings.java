package dev.tutti.runtime.settings;

import dev.tutti.ProcessGroup;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.cpu.wait.HostCores;
import dev.tutti.spi.BackendContext;
import dev.tutti.store.JobToken;
import java.time.Duration;
import java.util.List;
import java.util.function.Predicate;

/** Declares the settings that the runtime itself reads. */
public final class RuntimeSettings {
  /** With the maximum, the record takes 240 MB for each group. */
  private static final int MAX_FLIGHT_RECORD = 1_000_000;

  /** The backend or backends. */
  public static final Setting<String> BACKEND =
      Setting.text("TUTTI_BACKEND", "", "backend, or several as in cpu:gloo,cuda:cuda");

  /** Where the ranks meet. */
  public static final Setting<String> INIT_METHOD =
      Setting.text(
          "TUTTI_INIT_METHOD",
          "env://",
          "where the ranks meet: env://, or a store such as tcp://, file://, aeron://");

  /** The store that env:// uses. */
  public static final Setting<String> STORE =
      Setting.text("TUTTI_STORE", "tcp", "scheme of the store that env:// uses");

  /** The limit for set-up, and for operations that have no deadline of their own. */
  public static final Setting<Duration> TIMEOUT =
      checked(
          Setting.duration(
              "TUTTI_TIMEOUT",
              ProcessGroup.DEFAULT_TIMEOUT,
              "deadline of set-up and of operations"),
          Duration::isPositive,
          "expected a time longer than 0");

  /** The limit for closing a group. */
  public static final Setting<Duration> CLOSE_TIMEOUT = BackendContext.CLOSE_TIMEOUT;

  /** How long an answer may take while ranks find out why something failed. */
  public static final Setting<Duration> ANSWER_TIMEOUT =
      checked(
          Setting.duration(
              "TUTTI_ANSWER_TIMEOUT",
              Duration.ofSeconds(5),
              "how long a rank waits for an answer of another rank or of the store while it finds"
                  + " out why something failed; longer for overloaded machines"),
          Duration::isPositive,
          "expected a time longer than 0");

  /** How long an operation may wait before it is reported. */
  public static final Setting<Duration> SLOW =
      Setting.duration(
          "TUTTI_SLOW",
          Duration.ofSeconds(30),
          "how long an operation waits before the log says which ranks it waits for; 0 for never");

  /** The length of the flight record. */
  public static final Setting<Integer> FLIGHT_RECORD =
      checked(
          Setting.integer("TUTTI_FLIGHT_RECORD", 256, "operations that the flight record keeps"),
          number -> number > 0 && number <= MAX_FLIGHT_RECORD,
          "expected a whole number from 1 to " + MAX_FLIGHT_RECORD);

  /** The same, under c10d's name. */
  public static final Setting<Integer> FR_BUFFER_SIZE = torchSize("TORCH_FR_BUFFER_SIZE");

  /** The same, under the name in older versions of c10d. */
  public static final Setting<Integer> TRACE_BUFFER_SIZE =
      torchSize("TORCH_NCCL_TRACE_BUFFER_SIZE");

  /** Where the flight record is written after a failure. */
  public static final Setting<String> FLIGHT_RECORD_DUMP =
      Setting.text(
          "TUTTI_FLIGHT_RECORD_DUMP",
          "",
          "path prefix of flight record files, followed by the rank; empty for none");

  /** The same, under c10d's name. */
  public static final Setting<String> FR_DUMP =
      Setting.text("TORCH_FR_DUMP_TEMP_FILE", "", "read where TUTTI_FLIGHT_RECORD_DUMP is not set");

  /** The same, under the name in older versions of c10d. */
  public static final Setting<String> DEBUG_INFO_DUMP =
      Setting.text(
          "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "", "read where TORCH_FR_DUMP_TEMP_FILE is not set");

  /**
   * Whether the file of the flight record is also written when the group of all ranks is closed.
   */
  public static final Setting<Boolean> FLIGHT_RECORD_ON_CLOSE =
      Setting.flag("TUTTI_FLIGHT_RECORD_ON_CLOSE", false, "write the flight record on close too");

  /** Whether the input of operations is searched for NaN. */
  public static final Setting<Boolean> NAN_CHECK =
      Setting.flag("TUTTI_NAN_CHECK", false, "fail an operation on the rank whose input has a NaN");

  /** The same, under c10d's name. */
  public static final Setting<Boolean> TORCH_NAN_CHECK =
      Setting.flag("TORCH_NCCL_NAN_CHECK", false, "same as TUTTI_NAN_CHECK");

  /** The port of the debug server. */
  public static final Setting<Integer> DEBUG_PORT =
      checked(
          Setting.integer(
              "TUTTI_DEBUG_PORT",
              -1,
              "port of the debug server of the first rank on a host, with the next port for the"
                  + " second rank; 0 for free ports, -1 for none"),
          number -> number >= -1 && number <= 0xffff,
          "expected a port, or -1");

  /** The address on which the debug server listens. */
  public static final Setting<String> DEBUG_HOST =
      Setting.text("TUTTI_DEBUG_HOST", "127.0.0.1", "address at which the debug server listens");

  /** This rank. */
  public static final Setting<String> RANK = Setting.text("RANK", "", "this rank, from 0");

  /** The number of ranks. */
  public static final Setting<String> WORLD_SIZE =
      Setting.text("WORLD_SIZE", "", "number of ranks");

  /** The host of rank 0. */
  public static final Setting<String> MASTER_ADDR =
      Setting.text("MASTER_ADDR", "", "host of the store");

  /** The port of the store. */
  public static final Setting<String> MASTER_PORT =
      Setting.text("MASTER_PORT", "", "port of the store");

  /** The name of the headless service of the pods of a Kubernetes job. */
  public static final Setting<String> HEADLESS_SERVICE =
      Setting.text(
          "TUTTI_HEADLESS_SERVICE",
          "",
          "headless service of a Kubernetes job, which gives the pod of rank 0 a host name");

  /** Whether a launcher serves the store. */
  public static final Setting<Boolean> AGENT_STORE =
      Setting.flag(
          "TORCHELASTIC_USE_AGENT_STORE", false, "the launcher serves the store instead of a rank");

  /** The number of restarts of the job. */
  public static final Setting<Integer> RESTART_COUNT =
      Setting.integer(
          "TORCHELASTIC_RESTART_COUNT", 0, "how many times the launcher has restarted the job");

  /** Whether c10d's store-based barrier runs after set-up. */
  public static final Setting<Boolean> INIT_BARRIER =
      Setting.flag("TORCH_DIST_INIT_BARRIER", false, "c10d's store-based barrier after set-up");

  private RuntimeSettings() {}

  /** Returns whether the input of operations is searched for NaN. */
  public static boolean isNanChecked(Settings settings) {
    return settings.get(NAN_CHECK) || settings.get(TORCH_NAN_CHECK);
  }

  private static Setting<Integer> torchSize(String name) {
    return checked(
        Setting.integer(name, -1, "read where TUTTI_FLIGHT_RECORD is not set"),
        number -> number >= -1,
        "expected a whole number from 0");
  }

  /** Returns how many operations the flight record keeps. */
  public static int flightRecord(Settings settings) {
    int own = settings.get(FLIGHT_RECORD);
    if (settings.text(FLIGHT_RECORD.name()).isPresent()) {
      return own;
    }
    int torch = settings.get(FR_BUFFER_SIZE);
    int older = torch < 0 ? settings.get(TRACE_BUFFER_SIZE) : torch;
    return older < 0 ? own : Math.clamp(older, 1, MAX_FLIGHT_RECORD);
  }

  /** Returns where the flight record is written after a failure; empty if nowhere. */
  public static String dumpPrefix(Settings settings) {
    for (Setting<String> each : List.of(FLIGHT_RECORD_DUMP, FR_DUMP, DEBUG_INFO_DUMP)) {
      String prefix = settings.get(each);
      if (!prefix.isEmpty()) {
        return prefix;
      }
    }
    return "";
  }

  /**
   * Returns this rank's local rank on its host, as launchers set it in LOCAL_RANK; 0 if it is not
   * set.
   */
  public static int localRank(Settings settings) {
    return settings
        .text("LOCAL_RANK")
        .filter(text -> text.matches("\\d{1,4}"))
        .map(Integer::valueOf)
        .orElse(0);
  }

  private static <T> Setting<T> checked(
      Setting<T> setting, Predicate<T> condition, String expected) {
    return Setting.of(
        setting.name(),
        setting.defaultText(),
        setting.description(),
        text -> {
          T value = setting.parser().apply(text);
          if (!condition.test(value)) {
            throw new IllegalArgumentException(expected);
          }
          return value;
        });
  }

  /**
   * Reads all settings, and the token, so that no invalid one is found when it is too late to
   * refuse it.
   *
   * @throws IllegalArgumentException naming the first setting that cannot be parsed
   */
  public static void check(Settings settings) {
    all().forEach(settings::get);
    JobToken _ = settings.get(JobToken.SETTING);
  }

  /** Returns all settings, for the listing of {@code tutti doctor}. */
  public static List<Setting<?>> all() {
    return List.of(
        BACKEND,
        INIT_METHOD,
        STORE,
        TIMEOUT,
        CLOSE_TIMEOUT,
        ANSWER_TIMEOUT,
        SLOW,
        FLIGHT_RECORD,
        FR_BUFFER_SIZE,
        TRACE_BUFFER_SIZE,
        FLIGHT_RECORD_DUMP,
        FR_DUMP,
        DEBUG_INFO_DUMP,
        FLIGHT_RECORD_ON_CLOSE,
        NAN_CHECK,
        TORCH_NAN_CHECK,
        DEBUG_PORT,
        DEBUG_HOST,
        RANK,
        WORLD_SIZE,
        MASTER_ADDR,
        MASTER_PORT,
        HEADLESS_SERVICE,
        AGENT_STORE,
        RESTART_COUNT,
        INIT_BARRIER,
        NoRestart.SETTING,
        SharedHeap.SETTING,
        HostCores.SETTING);
  }
}
