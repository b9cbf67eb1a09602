package dev.tutti.contracts.fuzz;

import dev.tutti.Store;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.contracts.GroupContract;
import dev.tutti.store.PrefixStore;
import dev.tutti.store.tcp.TcpStore;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.platform.commons.support.ReflectionSupport;

/** A process of a {@link ProcessHost}, which runs its ranks of one program after another. */
final class ProcessPart {
  static final String STARTED = "started/";
  static final String TASKS = "tasks/";
  static final String OUTCOMES = "outcomes/";
  private static final Duration UNTIL_KILLED = Duration.ofDays(1);

  private ProcessPart() {}

  /**
   * Runs programs until the process is killed or the store is gone.
   *
   * @param args the test class, the store's address, the number of this part, and the number of
   *     parts
   */
  static void main(String[] args) throws Exception {
    Class<?> testClass = Class.forName(args[0]);
    String[] address = args[1].split(File.pathSeparator, 2);
    String part = args[2];
    int parts = Integer.parseInt(args[3]);
    ContractSubject subject = ((GroupContract) ReflectionSupport.newInstance(testClass)).subject();
    try (Store store = new TcpStore(address[0], Integer.parseInt(address[1]))) {
      store.set(STARTED + part, "1");
      while (true) {
        String[] task =
            new String(store.queuePop(TASKS + part, UNTIL_KILLED), StandardCharsets.UTF_8)
                .split("\n", 2);
        String[] head = task[0].split(" ", 2);
        Duration patience = Duration.ofMillis(Long.parseLong(head[1]));
        Outcome outcome =
            run(
                subject,
                Program.parse(task[1]),
                patience,
                head[0],
                Integer.parseInt(part),
                parts,
                store);
        store.queuePush(
            OUTCOMES + head[0] + "/" + part, outcome.toString().getBytes(StandardCharsets.UTF_8));
      }
    }
  }

  /** Runs this process's ranks of a program, which are dealt out to the processes in turn. */
  static Outcome run(
      ContractSubject subject,
      Program program,
      Duration patience,
      String run,
      int part,
      int parts,
      Store store)
      throws InterruptedException {
    List<Integer> own =
        IntStream.range(0, program.size()).filter(rank -> rank % parts == part).boxed().toList();
    return new ProgramRunner(subject, program, own)
        .run(new PrefixStore("run/" + run, store), patience);
  }
}
