package dev.tutti.cuda;

import dev.tutti.BackendException;
import java.io.IOException;
import java.io.InputStream;

/** Reads the kernels from this module's resources. */
final class ResourceKernels implements KernelLoader {
  private static final String NAME = "kernels.fatbin";

  @Override
  public byte[] image() {
    try (InputStream in = ResourceKernels.class.getResourceAsStream(NAME)) {
      if (in == null) {
        throw new BackendException("the compiled kernels are missing: no resource " + NAME);
      }
      return in.readAllBytes();
    } catch (IOException e) {
      throw new BackendException("cannot read the compiled kernels", e);
    }
  }
}
