package dev.tutti.cli;

import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** Finds the classes that read a real clock, wait with a limit, create threads or draw numbers. */
final class RealTime {
  private static final String TIMED =
      "J(I|Ljava/util/concurrent/TimeUnit;)?|.*Ljava/time/Duration;";

  private static final Pattern CALL =
      Pattern.compile(
          String.join(
              "|",
              "java\\.lang\\.System\\.(nanoTime|currentTimeMillis)\\(.*",
              "java\\.lang\\.Thread\\.(sleep|ofPlatform|ofVirtual|startVirtualThread|<init>)\\(.*",
              ".*\\.(wait|join)\\((" + TIMED + ")\\)[VZ]",
              "java\\.util\\.concurrent\\.locks\\.LockSupport\\.park(Nanos|Until)\\(.*",
              "java\\.util\\.concurrent\\..*\\.(awaitNanos|awaitUntil)\\(.*",
              "java\\.util\\.concurrent\\..*\\.(get|poll|offer|await|tryLock|tryAcquire|exchange"
                  + "|awaitTermination)\\(.*JLjava/util/concurrent/TimeUnit;\\).*",
              "java\\.nio\\.channels\\.Selector\\.select\\(.*J\\)I",
              "java\\.util\\.concurrent\\.TimeUnit\\.(sleep|timedWait|timedJoin)\\(.*",
              "java\\.util\\.concurrent\\.CompletableFuture\\."
                  + "(delayedExecutor|orTimeout|completeOnTimeout)\\(.*",
              "java\\.util\\.concurrent\\.Executors\\..*",
              "java\\.util\\.Timer\\..*",
              "java\\.time\\.Instant\\.now\\(.*",
              "java\\.time\\.Clock\\.(system|tick).*",
              "java\\.util\\.UUID\\.randomUUID\\(.*",
              "java\\.util\\.concurrent\\.ThreadLocalRandom\\..*",
              "java\\.util\\.Random\\.<init>\\(\\).*",
              "java\\.security\\.SecureRandom\\.<init>\\(.*",
              "java\\.lang\\.Math\\.random\\(.*"));

  private RealTime() {}

  /** Returns the classes of some modules that make such calls, each with the calls. */
  static SortedMap<String, Set<String>> callers(ClassGraph graph, Set<String> modules) {
    SortedMap<String, Set<String>> found = new TreeMap<>();
    graph
        .members()
        .forEach(
            (name, members) -> {
              if (modules.contains(graph.moduleOf(name))) {
                for (String member : members) {
                  if (CALL.matcher(member).matches()) {
                    found.computeIfAbsent(name, _ -> new TreeSet<>()).add(member);
                  }
                }
              }
            });
    return found;
  }

  /** Returns how many different calls the classes of a module make. */
  static int count(ClassGraph graph, String module) {
    return callers(graph, Set.of(module)).values().stream().mapToInt(Set::size).sum();
  }

  /** Returns the classes of some modules that choose the time of this machine. */
  static Set<String> choosers(ClassGraph graph, Set<String> modules) {
    Set<String> found = new TreeSet<>();
    for (Map.Entry<String, ? extends Set<String>> each : graph.members().entrySet()) {
      if (modules.contains(graph.moduleOf(each.getKey()))
          && each.getValue().contains("dev.tutti.spi.Time.SYSTEMLdev/tutti/spi/Time;")) {
        found.add(each.getKey());
      }
    }
    return found;
  }
}
