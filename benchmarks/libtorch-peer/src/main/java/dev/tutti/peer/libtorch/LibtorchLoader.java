package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.global.torch;

/**
 * Loads libtorch.
 *
 * <p>While JavaCPP unpacks the libraries into its cache, it does not keep other processes from
 * mapping a half-written file. So the first process unpacks and loads under a file lock and leaves
 * a marker; processes that find the marker take no lock.
 */
final class LibtorchLoader {
  private static final String LOCK = "unpack.lock";

  private LibtorchLoader() {}

  /** Returns the marker that a cache directory has once it holds the libraries. */
  static Path marker(Path cache) {
    String jars = PeerData.crc(LibtorchClasspath.nativeJars().getBytes(UTF_8));
    return cache.resolve("unpacked-" + jars);
  }

  static void load() {
    try {
      Path cache = Loader.getCacheDir().toPath();
      Path marker = marker(cache);
      if (Files.exists(marker)) {
        Loader.load(torch.class);
        return;
      }
      try (FileChannel channel =
              FileChannel.open(
                  cache.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
          FileLock lock = channel.lock()) {
        Loader.load(torch.class);
        if (lock.isValid() && !Files.exists(marker)) {
          Files.createFile(marker);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
