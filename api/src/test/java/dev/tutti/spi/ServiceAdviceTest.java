package dev.tutti.spi;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ServiceAdviceTest {
  private static final ServiceAdvice MISSING =
      new ServiceAdvice("dev.tutti.none.NoProvider", "tutti-none", "dev.tutti.none");

  @Test
  void aMissingJarIsNamed() {
    assertThat(MISSING.of(StoreProvider.class, ServiceAdviceTest.class))
        .isEqualTo("add the jar tutti-none");
  }

  @Test
  void onTheModulePathTheModuleIsNamed() {
    assertThat(MISSING.of(StoreProvider.class, String.class))
        .isEqualTo(
            "put the jar tutti-none on the module path and add the module dev.tutti.none, by"
                + " 'requires' or --add-modules");
  }

  @Test
  void aJarOfSeveralThatLostADeclarationIsToMergeThem() {
    ServiceAdvice lost =
        new ServiceAdvice(ServiceAdviceTest.class.getName(), "tutti-none", "dev.tutti.none");
    assertThat(lost.of(StoreProvider.class, ServiceAdviceTest.class))
        .isEqualTo(
            "dev.tutti.spi.ServiceAdviceTest is there, but no file"
                + " META-INF/services/dev.tutti.spi.StoreProvider names it; where several jars are"
                + " made into one, merge these files");
  }

  @Test
  void aProcessThatCanOpenNoFilesIsNotToldToAddJars() {
    assertThat(MISSING.of(StoreProvider.class, ServiceAdviceTest.class, () -> false))
        .isEqualTo(
            "this process may open no more files, and so cannot read its jars; raise the limit"
                + " with 'ulimit -n'");
  }
}
