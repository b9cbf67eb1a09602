package dev.tutti.guice;

import com.google.inject.Guice;
import com.google.inject.Injector;
import dev.tutti.ProcessGroup;

/** The compiled example of the package; {@link TuttiModuleTest} runs similar code. */
final class GuiceSnippets {
  private GuiceSnippets() {}

  static void inject() {
    // @start region="inject"
    Injector injector = Guice.createInjector(new TuttiModule());
    try (ProcessGroup group = injector.getInstance(ProcessGroup.class)) { // joins the job
      group.barrier();
    }
    // @end
  }
}
