package dev.tutti.cuda;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs test classes without Maven, on a machine that has a JVM and jars only. */
public final class RunTests {
  private RunTests() {}

  /**
   * Runs the tests, prints a line for each one, and exits with code 1 if one failed or none ran.
   *
   * @param args the names of test classes, or of methods such as {@code a.Test#name}
   */
  public static void main(String[] args) {
    List<DiscoverySelector> classes = new ArrayList<>();
    for (String name : args) {
      classes.add(
          name.contains("#")
              ? DiscoverySelectors.selectMethod(name)
              : DiscoverySelectors.selectClass(name));
    }
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(classes)
            .configurationParameter("junit.jupiter.execution.timeout.default", "120 s")
            .build();
    Launcher launcher = LauncherFactory.create();
    Lines lines = new Lines(System.out);
    launcher.execute(request, lines);
    System.out.println(
        lines.passed + " passed, " + lines.skipped + " skipped, " + lines.failed + " failed");
    System.exit(lines.failed > 0 || lines.passed == 0 ? 1 : 0);
  }

  private static final class Lines implements TestExecutionListener {
    private final PrintStream out;
    private int passed;
    private int skipped;
    private int failed;

    Lines(PrintStream out) {
      this.out = out;
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
      skipped++;
      out.println("skipped " + name(test) + ": " + reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      switch (result.getStatus()) {
        case SUCCESSFUL -> {
          if (test.isTest()) {
            passed++;
            out.println("passed  " + name(test));
          }
        }
        case ABORTED -> {
          skipped++;
          String reason = result.getThrowable().map(Throwable::getMessage).orElse("");
          out.println("skipped " + name(test) + ": " + reason);
        }
        case FAILED -> {
          failed++;
          out.println("FAILED  " + name(test));
          result.getThrowable().ifPresent(e -> e.printStackTrace(out));
        }
      }
    }

    private static String name(TestIdentifier test) {
      return test.getUniqueId().replaceAll(".*\\[class:[\\w.]*?(\\w+)\\]", "$1")
          + " "
          + test.getDisplayName();
    }
  }
}
