package dev.tutti.internal;

import dev.tutti.Capabilities;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;

/** Makes the groups that are parts of one group. */
final class Subgroups {
  private final TuttiProcessGroup parent;
  private final Group group;
  private final Job job;
  private final List<ProcessGroup> children = new CopyOnWriteArrayList<>();
  private int count;

  Subgroups(TuttiProcessGroup parent, Group group, Job job) {
    this.parent = parent;
    this.group = group;
    this.job = job;
  }

  /**
   * Counts calls of all ranks alike; groups of the group of all ranks get c10d's names "1", "2".
   */
  private synchronized String nextName() {
    count++;
    return group.name.equals("0") ? Integer.toString(count) : group.name + "." + count;
  }

  Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    String name = nextName();
    return create(name, ranks.stream().sorted().toList());
  }

  Optional<ProcessGroup> split(int color, int key) {
    String name = nextName();
    String own = color + " " + key;
    List<String> answers = isAlone() ? Collections.nCopies(group.size, own) : exchange(name, own);
    if (color < 0) {
      return Optional.empty();
    }
    record Member(int rank, int key) {}

    List<Member> members = new ArrayList<>();
    for (int r = 0; r < answers.size(); r++) {
      String[] answer = answers.get(r).split(" ", 2);
      if (Integer.parseInt(answer[0]) == color) {
        members.add(new Member(r, Integer.parseInt(answer[1])));
      }
    }
    members.sort(Comparator.comparingInt(Member::key).thenComparingInt(Member::rank));
    return create(name + "." + color, members.stream().map(Member::rank).toList());
  }

  /** Tells whether no backend reaches other ranks: then they are taken to do what this one does. */
  private boolean isAlone() {
    return group.backends.values().stream()
        .noneMatch(bound -> bound.capabilities().has(Capabilities.Feature.REAL_RESULTS));
  }

  private List<String> exchange(String name, String own) {
    Store store = job.groupStore(group.name);
    String prefix = "split/" + name + "/";
    store.set(prefix + group.rank, own);
    List<String> keys = new ArrayList<>();
    for (int r = 0; r < group.size; r++) {
      keys.add(prefix + r);
    }
    return store.multiGet(keys, Duration.ofNanos(group.timeoutNanos())).stream()
        .map(answer -> new String(answer, StandardCharsets.UTF_8))
        .toList();
  }

  private Optional<ProcessGroup> create(String name, List<Integer> ranks) {
    int rank = ranks.indexOf(group.rank);
    if (rank < 0) {
      return Optional.empty();
    }
    group.ensureUsable(OpType.SPLIT);
    List<Integer> globalRanks = ranks.stream().map(group.globalRanks::get).toList();
    Group created = job.createGroup(name, rank, globalRanks, parent.timeout());
    ProcessGroup child = new TuttiProcessGroup(created, job);
    children.add(child);
    return Optional.of(child);
  }

  void close() {
    for (ProcessGroup child : children) {
      child.close();
    }
  }
}
