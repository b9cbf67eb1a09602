package dev.tutti.guice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.inject.Guice;
import com.google.inject.Injector;
import com.google.inject.ProvisionException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.store.HashStore;
import jakarta.inject.Inject;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TuttiModuleTest {
  private static final class Trainer {
    private final ProcessGroup group;
    private final Store store;
    private final Settings settings;

    @Inject
    Trainer(ProcessGroup group, Store store, Settings settings) {
      this.group = group;
      this.store = store;
      this.settings = settings;
    }
  }

  private static Injector injector(String backend) {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_BACKEND", backend));
    return Guice.createInjector(
        new TuttiModule(
            GroupOptions.DEFAULT
                .withSettings(settings)
                .withStore(new HashStore())
                .withRank(2)
                .withSize(4)));
  }

  @Test
  void injectsOneGroupAndItsStore() {
    Injector injector = injector("fake");
    Trainer trainer = injector.getInstance(Trainer.class);
    try (ProcessGroup group = trainer.group) {
      assertThat(group.rank()).isEqualTo(2);
      assertThat(group.size()).isEqualTo(4);
      assertThat(trainer.settings.text("TUTTI_BACKEND")).contains("fake");
      assertThat(injector.getInstance(Trainer.class).group).isSameAs(group);
      assertThat(injector.getInstance(Store.class)).isSameAs(trainer.store);
      trainer.store.set("key", new byte[] {5});
      assertThat(group.store().get("key")).containsExactly(5);
      group.broadcast(Tensor.of(1f, 2f), 0);
      assertThat(group.sequenceNumber()).isEqualTo(1);
    }
  }

  @Test
  void namesWhatIsWrongWhenTheGroupIsAskedFor() {
    Injector injector = injector("nonsense");
    assertThatThrownBy(() -> injector.getInstance(ProcessGroup.class))
        .isInstanceOf(ProvisionException.class)
        .hasMessageContaining("nonsense");
  }
}
