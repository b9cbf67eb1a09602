package dev.tutti.peer.libtorch;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.bytedeco.pytorch.Store;
import org.bytedeco.pytorch.gloo.Device;
import org.jspecify.annotations.Nullable;

/** Runs the lines of a script against one store and the groups made on it. */
final class PeerSession {
  private static final String DEFAULT_GROUP = "";

  private final PeerArguments arguments;
  private final Store store;
  private final Map<String, Optional<PeerGroup>> groups = new HashMap<>();
  private final Map<String, PeerOperation> started = new HashMap<>();

  private PeerSession(PeerArguments arguments, Store store) {
    this.arguments = arguments;
    this.store = store;
  }

  static PeerSession open(PeerArguments arguments, PeerOutput out) {
    PeerStores.Opened opened = PeerStores.open(arguments);
    if (arguments.server()) {
      out.line("PORT " + opened.port());
    }
    opened.awaitWorkers().run();
    PeerSession session = new PeerSession(arguments, opened.store());
    if (arguments.group()) {
      session.createGroup(
          DEFAULT_GROUP,
          arguments.prefixes(),
          PeerGroup.device(arguments),
          arguments.rank(),
          arguments.size());
    }
    return session;
  }

  PeerResult run(ScriptLine line) {
    if (line.op().equals("subgroup")) {
      return done(line, Map.of("member", Boolean.toString(subgroup(line))));
    }
    if (line.op().equals("wait")) {
      String name = line.word(0, "the name");
      PeerOperation operation = started.remove(name);
      if (operation == null) {
        throw new IllegalArgumentException("wait: no operation was started as async=" + name);
      }
      return report(line, operation.await());
    }
    if (line.op().startsWith("store_")) {
      List<String> reply = PeerStoreOperations.run(store, line);
      return new PeerResult(
          true, line.number(), line.op(), PeerData.crc(new byte[0]), reply, Map.of(), "");
    }
    return collective(line);
  }

  void close() {
    defaultGroup().ifPresent(group -> start(group, ScriptLine.parse(0, "barrier")).await());
  }

  private Optional<PeerGroup> defaultGroup() {
    return groups.getOrDefault(DEFAULT_GROUP, Optional.empty());
  }

  private PeerResult collective(ScriptLine line) {
    String name = line.option("group", DEFAULT_GROUP);
    Optional<PeerGroup> group = groups.get(name);
    if (group == null) {
      throw new IllegalArgumentException(line.op() + ": there is no group '" + name + "'");
    }
    String async = line.options().get("async");
    if (group.isEmpty()) {
      if (async != null) {
        started.put(async, PeerOperation.NONE);
      }
      return done(line, Map.of("member", "false"));
    }
    PeerOperation operation = start(group.get(), line);
    if (async != null) {
      started.put(async, operation);
      return done(line, Map.of("async", async));
    }
    return report(line, operation.await());
  }

  private static PeerOperation start(PeerGroup group, ScriptLine line) {
    @Nullable PeerOperation operation = new PeerReductions(group, line).start();
    if (operation == null) {
      operation = new PeerCollectives(group, line).start();
    }
    if (operation == null) {
      throw new IllegalArgumentException("no such operation: " + line.op());
    }
    return operation;
  }

  private boolean subgroup(ScriptLine line) {
    String name = line.required("name");
    long[] ranks = Flags.numbers(line.required("ranks"));
    int position = Arrays.stream(ranks).boxed().toList().indexOf((long) arguments.rank());
    if (position < 0) {
      groups.put(name, Optional.empty());
      return false;
    }
    Device device =
        line.option("device", "own").equals("shared")
            ? defaultGroup().orElseThrow().device()
            : PeerGroup.device(arguments);
    createGroup(name, subgroupPrefixes(name), device, position, ranks.length);
    return true;
  }

  /**
   * Like Python's new_group, puts the group's name between the default group's prefixes and the
   * device's.
   */
  private List<String> subgroupPrefixes(String name) {
    List<String> prefixes = new ArrayList<>(arguments.prefixes());
    prefixes.add(Math.max(0, prefixes.size() - 1), name + "/");
    return prefixes;
  }

  private void createGroup(String name, List<String> prefixes, Device device, int rank, int size) {
    PeerGroup group =
        PeerGroup.create(
            PeerStores.wrap(store, prefixes), device, rank, size, arguments.timeoutMillis());
    groups.put(name, Optional.of(group));
  }

  private static PeerResult done(ScriptLine line, Map<String, String> attributes) {
    String crc = PeerData.crc(new byte[0]);
    return new PeerResult(true, line.number(), line.op(), crc, List.of(), attributes, "");
  }

  private static PeerResult report(ScriptLine line, PeerOperation.Outcome outcome) {
    Map<String, String> attributes =
        outcome.source() < 0 ? Map.of() : Map.of("source", "" + outcome.source());
    List<String> values = PeerData.head(outcome.type(), outcome.bytes(), 4);
    String crc = PeerData.crc(outcome.bytes());
    return new PeerResult(true, line.number(), line.op(), crc, values, attributes, "");
  }
}
