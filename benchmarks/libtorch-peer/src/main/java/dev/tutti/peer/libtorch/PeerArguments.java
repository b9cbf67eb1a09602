package dev.tutti.peer.libtorch;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Where a peer finds its store and its group: the options of {@link LibtorchPeer} and {@link
 * LibtorchBench}.
 *
 * @param rank rank of the process in the group
 * @param size number of ranks
 * @param host address of the TCP store, to which Gloo also binds
 * @param port port of the TCP store; with {@code server}, 0 lets the system choose
 * @param store {@code tcp} or {@code file}
 * @param file path of the file store, empty otherwise
 * @param server whether this process hosts the TCP store
 * @param legacy whether the hosted store uses the poll-loop backend instead of libuv
 * @param workers if above 0, this process counts itself under the key {@code init/}, and a server,
 *     after reporting its port, waits until this many processes have done so
 * @param lazy whether Gloo connects pairs on first use
 * @param group false to open only the store
 * @param keepGoing whether the script continues after an ERROR
 * @param prefixes names of the prefix stores around the store, innermost first
 * @param timeoutMillis limit for setup steps and for each operation, in milliseconds
 * @param script file to read the script from, empty for standard input
 */
public record PeerArguments(
    int rank,
    int size,
    String host,
    int port,
    String store,
    String file,
    boolean server,
    boolean legacy,
    int workers,
    boolean lazy,
    boolean group,
    boolean keepGoing,
    List<String> prefixes,
    int timeoutMillis,
    String script) {

  private static final String PYTHON_PREFIXES = "default_pg,0/,cpu/";
  static final Set<String> SWITCHES = Set.of("server", "legacy", "lazy", "no-group", "keep-going");

  /** Checks the ranges, and that store and file match. */
  public PeerArguments {
    prefixes = List.copyOf(prefixes);
    if (rank < 0 || rank >= size) {
      throw new IllegalArgumentException("--rank: expected 0.." + (size - 1) + ", got " + rank);
    }
    if (!store.equals("tcp") && !store.equals("file")) {
      throw new IllegalArgumentException("--store: expected tcp or file, got " + store);
    }
    if (store.equals("file") == file.isEmpty()) {
      throw new IllegalArgumentException(
          "--file: required with --store file and only there, got '" + file + "'");
    }
    if (store.equals("tcp") && !server && port == 0) {
      throw new IllegalArgumentException(
          "--port: expected the store's port in a process that does not host it");
    }
    if (timeoutMillis <= 0) {
      throw new IllegalArgumentException(
          "--timeout-ms: expected more than 0, got " + timeoutMillis);
    }
  }

  /**
   * Describes a client of a TCP store with the key prefixes of Python's default group and a limit
   * of 60 s.
   *
   * @param rank rank of the process
   * @param size number of ranks
   * @param port the store's port on 127.0.0.1
   * @return the arguments
   */
  public static PeerArguments tcp(int rank, int size, int port) {
    return parse("--rank", "" + rank, "--size", "" + size, "--port", "" + port);
  }

  /**
   * Describes the process that hosts the TCP store on a port that the system chooses; otherwise
   * like {@link #tcp}.
   *
   * @param rank rank of the process
   * @param size number of ranks
   * @return the arguments
   */
  public static PeerArguments tcpServer(int rank, int size) {
    return parse("--rank", "" + rank, "--size", "" + size, "--server");
  }

  /**
   * Describes a process of a group that meets in a file; otherwise like {@link #tcp}.
   *
   * @param rank rank of the process
   * @param size number of ranks
   * @param file path of a file that does not exist yet or was created by other ranks of this group
   * @return the arguments
   */
  public static PeerArguments file(int rank, int size, String file) {
    return parse("--rank", "" + rank, "--size", "" + size, "--store", "file", "--file", file);
  }

  /**
   * Changes options.
   *
   * @param options options as on the command line, such as {@code "--lazy", "--timeout-ms", "5000"}
   * @return these arguments with the given options in place of their own
   * @throws IllegalArgumentException if an option is unknown or out of range
   */
  public PeerArguments with(String... options) {
    List<String> all = new ArrayList<>(toCommandLine());
    all.addAll(List.of(options));
    return parse(all.toArray(String[]::new));
  }

  /**
   * Parses a command line; if an option is given twice, the last one counts.
   *
   * @param arguments options
   * @return the arguments
   * @throws IllegalArgumentException if an option is unknown, lacks its value or is out of range
   */
  public static PeerArguments parse(String... arguments) {
    Flags flags = new Flags(arguments, SWITCHES);
    PeerArguments parsed = from(flags);
    flags.rejectUnread();
    return parsed;
  }

  static PeerArguments from(Flags flags) {
    return new PeerArguments(
        flags.number("rank", 0),
        flags.number("size", 1),
        flags.text("host", "127.0.0.1"),
        flags.number("port", 0),
        flags.text("store", "tcp"),
        flags.text("file", ""),
        flags.isSet("server"),
        flags.isSet("legacy"),
        flags.number("workers", 0),
        flags.isSet("lazy"),
        !flags.isSet("no-group"),
        flags.isSet("keep-going"),
        flags.list("prefix", PYTHON_PREFIXES),
        flags.number("timeout-ms", 60_000),
        flags.text("script", ""));
  }

  /**
   * Writes the options as a command line.
   *
   * @return a command line that {@link #parse} reads back as equal arguments
   */
  public List<String> toCommandLine() {
    List<String> line = new ArrayList<>();
    Flags.option("rank", "" + rank).forEach(line::add);
    Flags.option("size", "" + size).forEach(line::add);
    Flags.option("host", host).forEach(line::add);
    Flags.option("port", "" + port).forEach(line::add);
    Flags.option("store", store).forEach(line::add);
    Flags.option("file", file).forEach(line::add);
    Flags.option("workers", "" + workers).forEach(line::add);
    Flags.option("prefix", String.join(",", prefixes)).forEach(line::add);
    Flags.option("timeout-ms", "" + timeoutMillis).forEach(line::add);
    Flags.option("script", script).forEach(line::add);
    addSwitch(line, "server", server);
    addSwitch(line, "legacy", legacy);
    addSwitch(line, "lazy", lazy);
    addSwitch(line, "no-group", !group);
    addSwitch(line, "keep-going", keepGoing);
    return line;
  }

  private static void addSwitch(List<String> line, String name, boolean on) {
    if (on) {
      line.add("--" + name);
    }
  }
}
