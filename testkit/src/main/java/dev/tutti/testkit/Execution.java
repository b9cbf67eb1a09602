package dev.tutti.testkit;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** A run of test classes as JUnit would run them, with a record of the outcome. */
public final class Execution implements TestExecutionListener {
  /** The parameter of {@code World} that sets for how many seconds memory may still be freed. */
  public static final String GRACE_SECONDS = "dev.tutti.testing.graceSeconds";

  private final Map<String, TestExecutionResult> tests = new ConcurrentHashMap<>();
  private final List<String> started = Collections.synchronizedList(new ArrayList<>());
  private final Map<String, TestExecutionResult> containers = new ConcurrentHashMap<>();

  private Execution() {}

  /**
   * Runs test classes.
   *
   * @param testClasses the classes
   */
  public static Execution of(Class<?>... testClasses) {
    return run(Map.of(), testClasses);
  }

  /**
   * Runs test classes on four threads.
   *
   * @param testClasses the classes
   */
  public static Execution inParallel(Class<?>... testClasses) {
    return run(
        Map.of(
            "junit.jupiter.execution.parallel.enabled", "true",
            "junit.jupiter.execution.parallel.mode.default", "concurrent",
            "junit.jupiter.execution.parallel.config.strategy", "fixed",
            "junit.jupiter.execution.parallel.config.fixed.parallelism", "4"),
        testClasses);
  }

  /**
   * Runs tests as JUnit before 5.13 does, which does not close every AutoCloseable in a store.
   *
   * @param testClasses the classes
   */
  public static Execution inOlderJunit(Class<?>... testClasses) {
    return run(
        Map.of("junit.jupiter.extensions.store.close.autocloseable.enabled", "false"), testClasses);
  }

  /**
   * Runs test classes with parameters of JUnit.
   *
   * @param parameters the parameters by name
   * @param testClasses the classes
   */
  public static Execution run(Map<String, String> parameters, Class<?>... testClasses) {
    LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
    // Contract tests that run beside the worlds have shared memory in the meantime.
    request.configurationParameter(GRACE_SECONDS, "200");
    request.configurationParameters(parameters);
    for (Class<?> testClass : testClasses) {
      request.selectors(selectClass(testClass));
    }
    Execution execution = new Execution();
    LauncherFactory.create().execute(request.build(), execution);
    return execution;
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      started.add(test.getDisplayName());
    }
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (test.isTest()) {
      tests.put(test.getDisplayName(), result);
    } else {
      containers.put(test.getLegacyReportingName(), result);
    }
  }

  /** Returns the display names of the tests, in the order in which they started. */
  public List<String> names() {
    return List.copyOf(started);
  }

  /** Returns the status of a test. */
  public TestExecutionResult.Status status(String name) {
    return result(name).getStatus();
  }

  /** Returns the exception that a test threw. */
  public Throwable thrownBy(String name) {
    return result(name).getThrowable().orElseThrow(() -> new AssertionError(name + " passed"));
  }

  /** Returns the exception thrown at the end of a class. */
  public Throwable thrownAfter(Class<?> testClass) {
    TestExecutionResult result = containers.get(testClass.getName());
    if (result == null) {
      throw new AssertionError("no " + testClass + " among " + containers.keySet());
    }
    return result.getThrowable().orElseThrow(() -> new AssertionError(testClass + " passed"));
  }

  /** Returns the tests and containers that did not succeed. */
  public List<String> failures() {
    List<String> failed = new ArrayList<>();
    tests.forEach((name, result) -> addFailure(failed, name, result));
    containers.forEach((name, result) -> addFailure(failed, name, result));
    return failed;
  }

  private static void addFailure(List<String> failed, String name, TestExecutionResult result) {
    if (result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
      failed.add(name + ": " + result);
    }
  }

  private TestExecutionResult result(String name) {
    TestExecutionResult result = tests.get(name);
    if (result == null) {
      throw new AssertionError("no test '" + name + "' among " + started);
    }
    return result;
  }
}
