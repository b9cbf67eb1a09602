package dev.tutti.kernels;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;
import java.util.zip.GZIPInputStream;

/** Reads the compiled kernels contained in the jar, and the record of what they were built from. */
public final class KernelImage {
  private static final String IMAGE = "tutti.fatbin.gz";
  private static final String RECORD = "tutti.properties";

  private KernelImage() {}

  /**
   * Reads the image, a CUDA fatbin that {@code cuModuleLoadData} accepts: machine code for sm_80,
   * sm_90, sm_100 and sm_120, and PTX for others.
   *
   * @throws UncheckedIOException if the jar is damaged
   */
  public static byte[] read() {
    try (InputStream in = new GZIPInputStream(open(IMAGE))) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + IMAGE, e);
    }
  }

  /**
   * Returns what the image was built from: {@code compiler} (nvcc's version), {@code flags}, {@code
   * targets}, {@code sources} and {@code image} (SHA-256).
   *
   * @throws UncheckedIOException if the jar is damaged
   */
  public static Properties record() {
    Properties properties = new Properties();
    try (InputStream in = open(RECORD)) {
      properties.load(in);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + RECORD, e);
    }
    return properties;
  }

  private static InputStream open(String name) throws IOException {
    InputStream in = KernelImage.class.getResourceAsStream(name);
    if (in == null) {
      throw new IOException("no resource " + name);
    }
    return in;
  }
}
