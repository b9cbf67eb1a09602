package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.spi.StreamBlockProvider;
import dev.tutti.spi.TensorAllocator;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Looks up services when only this module is present. */
class ServicesTest {
  @TempDir private Path folder;

  /** A factory that reports that it was asked. */
  public static class First implements ProcessGroupFactory {
    /** Creates the factory. */
    public First() {}

    @Override
    public ProcessGroup init(GroupOptions options) {
      throw new UnsupportedOperationException(getClass().getSimpleName());
    }

    @Override
    public ProcessGroup join(GroupOptions options) {
      throw new UnsupportedOperationException(getClass().getSimpleName());
    }

    @Override
    public StreamBlockProvider streamBlock(String deviceType) {
      throw new UnsupportedOperationException(getClass().getSimpleName());
    }
  }

  /** A second factory, which is one too many. */
  public static final class Second extends First {
    /** Creates the factory. */
    public Second() {}
  }

  @Test
  void namesTheJarThatHoldsTheRuntime() {
    assertThatThrownBy(() -> ProcessGroup.init(GroupOptions.DEFAULT))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("no runtime was found; add the jar tutti-runtime");
  }

  @Test
  void findsTheRuntimeThatTheContextClassLoaderOffers() throws Exception {
    assertThatThrownBy(() -> offering(() -> ProcessGroup.init(GroupOptions.DEFAULT), First.class))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage("First");
  }

  @Test
  void refusesTwoRuntimes() {
    assertThatThrownBy(
            () ->
                offering(() -> ProcessGroup.init(GroupOptions.DEFAULT), First.class, Second.class))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("two providers are runtimes")
        .hasMessageContaining(First.class.getName())
        .hasMessageContaining(Second.class.getName());
  }

  @Test
  void allocatesByTheJdkWithoutAnAllocator() {
    TensorAllocator allocator = TensorMemory.find();
    assertThat(allocator).isInstanceOf(ArenaAllocator.class);
    Tensor tensor = Tensor.allocate(DType.FLOAT32, 100_000);
    assertThat(tensor.segment().address() % Tensor.ALIGNMENT).isZero();
    assertThat(tensor.segment().byteSize()).isEqualTo(400_000);
    assertThat(tensor.segment().scope().isAlive()).isTrue();
  }

  private <T> T offering(Callable<T> call, Class<?>... factories) throws Exception {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    StringBuilder names = new StringBuilder();
    for (Class<?> factory : factories) {
      names.append(factory.getName()).append('\n');
    }
    Files.writeString(services.resolve(ProcessGroupFactory.class.getName()), names);
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    try (URLClassLoader offers = new URLClassLoader(new URL[] {folder.toUri().toURL()}, before)) {
      thread.setContextClassLoader(offers);
      return call.call();
    } finally {
      thread.setContextClassLoader(before);
    }
  }
}
