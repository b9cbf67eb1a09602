package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import app.Loader;
import dev.tutti.GroupOptions;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.cli.JsonSchema;
import dev.tutti.cli.SourceTree;
import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.fake.simulation.FaultPlan;
import dev.tutti.fake.simulation.FaultPlan.Fault;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.json.Json;
import dev.tutti.runtime.failure.FailureLog;
import dev.tutti.runtime.failure.JobVerdict;
import dev.tutti.runtime.status.StatusQuery;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobPage;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobView;
import dev.tutti.runtime.view.Pause;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Tests that all views of a job name the same rank and reason, in the same words. {@code
 * -Dtutti.writeDocs=true} writes the table of what they say.
 */
@Isolated("threads of other tests in shared locks would bring in real time")
class FiveJobsTest {
  private static final int SIZE = 4;
  private static final int LAST = 60;
  private static final int AT = 40;

  /** The time of day at which simulations begin. */
  private static final long START_NANOS = 1_800_000_000_000L * 1_000_000;

  private static final Duration STEP = Duration.ofMillis(25);
  private static final Duration LONG = Duration.ofMinutes(10);
  private static final Object SCHEMA = schema();
  private static final Path PAGE = SourceTree.root().resolve("docs/watching.md");
  private static final Pattern TABLE =
      Pattern.compile("(?s)(<!-- five jobs -->\n).*(<!-- end -->)");

  private final Map<String, Map<String, String>> table = new TreeMap<>();

  /** What the views of one job show. */
  private static final class Job extends Handler {
    final Map<Integer, String> records = new TreeMap<>();
    final List<String> log = new ArrayList<>();
    final List<Pause> pauses = new ArrayList<>();
    JobView status;
    JobVerdict ofRanks;

    @Override
    public void publish(LogRecord line) {
      log.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}

    JobView trace() {
      JobRecords all = JobRecords.empty();
      records.forEach(
          (rank, json) -> FlightRecordReader.add((Map<?, ?>) Json.read(json), rank, all));
      all.pauses().addAll(pauses);
      return JobView.of(all);
    }
  }

  /**
   * Runs a job.
   *
   * @param job what its views are added to
   * @param plan the faults
   * @param work how long ranks work before a step that do not work as long as the others
   * @param stuck the rank that hangs before step 40, or -1
   * @param odd the rank that has two elements in step 40, or -1
   * @param askAt when the status is read; also when ranks write their records, unless they fail
   */
  private static Job run(
      Job job, FaultPlan plan, Map<Integer, Duration> work, int stuck, int odd, Duration askAt) {
    Logger logger = Logger.getLogger("dev.tutti.runtime.failure.SlowReports");
    logger.addHandler(job);
    logger.setUseParentHandlers(false);
    List<Tensor> tensors = IntStream.range(0, SIZE).mapToObj(_ -> Tensor.of(1f)).toList();
    Tensor two = Tensor.of(1f, 2f);
    try {
      var _ =
          SimulatedWorld.of(SIZE)
              .withTimeout(Duration.ofSeconds(90))
              .withFaults(plan)
              .withOptions(options -> withOperator(options, job, askAt))
              .run(
                  group -> {
                    int rank = group.rank();
                    try {
                      for (int step = 1; step <= LAST; step++) {
                        boolean isStuck = rank == stuck && step == AT;
                        Loader.next(isStuck ? LONG : work.getOrDefault(rank, STEP));
                        group.allReduce(rank == odd && step == AT ? two : tensors.get(rank));
                      }
                    } catch (TuttiException e) {
                      assertThat(e).isNotNull();
                    }
                    job.records.put(rank, group.diagnostics().flightRecord());
                    Loader.next(LONG);
                  });
    } finally {
      logger.removeHandler(job);
      logger.setUseParentHandlers(true);
    }
    return job;
  }

  /** Lets somebody outside the job ask for its status, and read what its ranks say of a failure. */
  private static GroupOptions withOperator(GroupOptions options, Job job, Duration askAt) {
    if (options.rank().orElse(-1) == 0) {
      Thread _ =
          options
              .time()
              .start(
                  "operator",
                  () -> {
                    SimulatedWorld.sleep(askAt);
                    try (StatusQuery query =
                        StatusQuery.of(options.store().orElseThrow(), true, options.time())
                            .orElseThrow()) {
                      job.status =
                          job.pauses.isEmpty()
                              ? JobView.of(query, Duration.ofSeconds(2))
                              : withPauses(query.ask(Duration.ofSeconds(2)), job.pauses);
                    }
                    SimulatedWorld.sleep(LONG.dividedBy(4));
                    job.ofRanks =
                        FailureLog.verdict(options.store().orElseThrow(), 0, SIZE).orElse(null);
                  });
    }
    return options.withSettings(Settings.ofEnvironment(Map.of()));
  }

  /** Adds to what ranks answer the pauses of their JVMs, of which the simulation has none. */
  private static JobView withPauses(Map<Integer, byte[]> answers, List<Pause> pauses) {
    SortedMap<Integer, Map<?, ?>> all = new TreeMap<>();
    answers.forEach(
        (rank, zipped) -> {
          Map<Object, Object> answer = new HashMap<>(unzip(zipped));
          answer.put(
              "pauses",
              pauses.stream()
                  .filter(pause -> pause.rank() == rank)
                  .map(
                      pause ->
                          Map.of(
                              "what", pause.what(),
                              "start_ns", pause.startNanos(),
                              "end_ns", pause.endNanos()))
                  .toList());
          all.put(rank, answer);
        });
    return JobView.of(all, new TreeMap<>(), null);
  }

  private static Map<?, ?> unzip(byte[] zipped) {
    try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(zipped))) {
      String json = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return (Map<?, ?>) Json.read(json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs a job in which the process of rank 1 stands still once. */
  private static Job paused(Duration askAt) {
    Duration at = Duration.ofSeconds(1);
    Duration length = Duration.ofMillis(248);
    Job job = new Job();
    long start = START_NANOS + at.toNanos();
    String what = "GC pause (G1 Old Generation)";
    job.pauses.add(new Pause(1, start, start + length.toNanos(), what));
    Fault fault = new Fault(FaultPlan.Kind.PAUSE, 1, at, length);
    return run(job, new FaultPlan(List.of(fault)), Map.of(), -1, -1, askAt.plus(length));
  }

  private static String report(JobVerdict ofRanks) {
    if (ofRanks == null) {
      return "";
    }
    Verdict first = new Verdict(Verdict.Kind.FAILED, 0, 0, 1, "rank 0 ended with exit code 1");
    return FailureReport.write(
            TestPlans.shell(SIZE, "exit"), first, ofRanks, List.of(), Map.of(), RunLogs.NONE)
        .lines()
        .findFirst()
        .orElseThrow();
  }

  private static String firstOfPage(JobView view) {
    Matcher text =
        Pattern.compile("\"verdict\":\\{[^}]*\"text\":\"([^\"]*)\"").matcher(JobPage.of(view));
    assertThat(text.find()).isTrue();
    return text.group(1);
  }

  private static Object schema() {
    try {
      Path file = SourceTree.root().resolve("docs/job-view.schema.json");
      return Json.read(Files.readString(file));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String firstOfJson(JobView view) {
    Map<?, ?> map = (Map<?, ?>) Json.read(Json.write(view.toMap()));
    assertThat(JsonSchema.misfits("view", map, SCHEMA)).isEmpty();
    return (String) ((Map<?, ?>) map.get("verdict")).get("text");
  }

  /** Adds the first lines of a job's views to the table, and asserts that they are the same. */
  private void add(String name, Job job, String expected) {
    Map<String, String> views = new TreeMap<>();
    views.put("status", job.status.lines().getFirst());
    views.put("JSON", firstOfJson(job.status));
    views.put("trace", job.trace().lines().getFirst());
    views.put("page", firstOfPage(job.trace()));
    String report = report(job.ofRanks);
    if (!report.isEmpty()) {
      views.put("report", report);
    }
    if (!job.log.isEmpty()) {
      views.put("log", job.log.getFirst().replaceFirst("^rank \\d/4, group 0: ", ""));
    }
    assertThat(views)
        .as(name)
        .allSatisfy(
            (_, line) -> assertThat(line.replaceFirst("\\d+ s ago", "… ago")).matches(expected));
    table.put(name, views);
  }

  @Test
  void allViewsSayTheSame() throws IOException {
    Duration soon = STEP.multipliedBy(50);
    add("1. healthy", run(new Job(), FaultPlan.NONE, Map.of(), -1, -1, soon), "healthy");
    add(
        "2. rank 2 is 20 ms late in each step",
        run(
            new Job(),
            FaultPlan.NONE,
            Map.of(2, STEP.plusMillis(20)),
            -1,
            -1,
            STEP.plusMillis(20).multipliedBy(50)),
        "rank 2 is slow: last in \\d+ of \\d+, others waited .* for it \\(4\\d % of the job\\)");
    add(
        "3. rank 1 hangs in its own code",
        run(new Job(), FaultPlan.NONE, Map.of(), 1, -1, Duration.ofSeconds(62)),
        "rank 1 is hung: it has not called allReduce #40, which 3 of 4 ranks called … ago; its"
            + " rank-1 thread is at app\\.Loader\\.next\\(Loader\\.java:\\d+\\)");
    add(
        "4. the JVM of rank 1 is paused for 248 ms",
        paused(soon),
        "rank 1's JVM was paused for 2\\d\\d ms: GC pause \\(G1 Old Generation\\), before allReduce"
            + " #4\\d float32\\[1]");
    Job odd = run(new Job(), FaultPlan.NONE, Map.of(), -1, 3, soon);
    assertThat(odd.status.lines())
        .filteredOn(line -> line.startsWith("FAILED"))
        .containsExactly("FAILED group 0: the evidence of ranks 0, 1, 2, 3 says the same");
    add(
        "5. rank 3 has two elements in step 40",
        odd,
        "ranks disagree: ranks 0, 1, 2 called allReduce #40 float32\\[1], rank 3 called allReduce"
            + " #40 float32\\[2]; rank 3 differs from the others");
    String page = Files.readString(PAGE);
    String written =
        TABLE.matcher(page).replaceFirst("$1" + Matcher.quoteReplacement(rows()) + "$2");
    if (Boolean.getBoolean("tutti.writeDocs")) {
      Files.writeString(PAGE, written);
    }
    assertThat(Files.readString(PAGE)).isEqualTo(written);
  }

  private String rows() {
    StringBuilder rows = new StringBuilder("\n| job | views | first line |\n|---|---|---|\n");
    table.forEach(
        (job, views) -> {
          Map<String, StringJoiner> byLine = new LinkedHashMap<>();
          views.forEach(
              (view, line) -> byLine.computeIfAbsent(line, _ -> new StringJoiner(", ")).add(view));
          byLine.forEach(
              (line, said) ->
                  rows.append("| %s | %s | `%s` |\n".formatted(job.substring(3), said, line)));
        });
    return rows + "\n";
  }
}
