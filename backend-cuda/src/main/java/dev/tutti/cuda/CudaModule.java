package dev.tutti.cuda;

import com.google.inject.AbstractModule;
import com.google.inject.Guice;
import com.google.inject.Provider;
import com.google.inject.ProvisionException;
import com.google.inject.Scopes;
import dev.tutti.TuttiException;
import dev.tutti.cuda.access.KernelLoader;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.LinkCalls;
import dev.tutti.cuda.driver.Nvml;
import dev.tutti.kernels.KernelImage;

/**
 * The bindings of {@link Cuda} and its parts for this machine's driver.
 *
 * <p>Everything is bound to an instance or a provider: for constructors and methods, Guice would
 * generate classes through a part of the JDK that prints a warning in every program.
 */
final class CudaModule extends AbstractModule {
  @Override
  protected void configure() {
    Provider<CudaDriver> driver = CudaDrivers::open;
    bind(CudaDriver.class).toProvider(driver).in(Scopes.SINGLETON);
    bind(LinkCalls.class).toInstance(new Nvml());
    bind(KernelLoader.class).toInstance(KernelImage::read);
    bind(Cuda.class).toProvider(cuda()).in(Scopes.SINGLETON);
  }

  private Provider<Cuda> cuda() {
    Provider<CudaDriver> driver = getProvider(CudaDriver.class);
    Provider<LinkCalls> links = getProvider(LinkCalls.class);
    Provider<KernelLoader> kernels = getProvider(KernelLoader.class);
    return () -> new Cuda(driver.get(), links.get(), kernels.get());
  }

  /**
   * Creates the objects.
   *
   * @throws TuttiException the underlying failure, without Guice's wrapping
   */
  static Cuda create() {
    try {
      return Guice.createInjector(new CudaModule()).getInstance(Cuda.class);
    } catch (ProvisionException e) {
      if (e.getCause() instanceof TuttiException cause) {
        throw cause;
      }
      throw e;
    }
  }
}
