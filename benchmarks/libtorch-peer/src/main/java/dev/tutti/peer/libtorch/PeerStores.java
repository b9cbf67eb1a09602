package dev.tutti.peer.libtorch;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.FileStore;
import org.bytedeco.pytorch.PrefixStore;
import org.bytedeco.pytorch.Store;
import org.bytedeco.pytorch.TCPStore;
import org.bytedeco.pytorch.TCPStoreOptions;

/**
 * Opens libtorch's stores.
 *
 * <p>libtorch counts references to a store, but an object made by a Java constructor of this
 * binding is not part of that count. It can be handed to libtorch once; a second time aborts the
 * process, and collecting the object would delete the store while libtorch uses it. So every such
 * object is kept for the life of the process. Code that needs a store more than once wraps it in a
 * prefix store and asks that for its underlying store, which is a counted handle.
 */
final class PeerStores {
  private static final List<Pointer> KEPT = Collections.synchronizedList(new ArrayList<>());

  private PeerStores() {}

  static Opened open(PeerArguments arguments) {
    if (arguments.store().equals("file")) {
      Store store = new FileStore(arguments.file(), arguments.size());
      store.setTimeout(new Milliseconds(arguments.timeoutMillis()));
      return new Opened(counted(store), 0, () -> {});
    }
    TCPStore store =
        openTcp(
            arguments.host(),
            arguments.port(),
            arguments.server(),
            arguments.legacy(),
            arguments.workers(),
            arguments.timeoutMillis());
    return new Opened(counted(store), port(store), store::waitForWorkers);
  }

  static TCPStore openTcp(
      String host, int port, boolean server, boolean legacy, int workers, int timeoutMillis) {
    TCPStoreOptions options = new TCPStoreOptions();
    options.port((short) port);
    options.isServer(server);
    options.useLibUV(!legacy);
    options.timeout(new Milliseconds(timeoutMillis));
    // Otherwise the constructor waits, and nobody gets the port that the workers need.
    options.waitWorkers(false);
    if (workers > 0) {
      options.numWorkers(new SizeTPointer(1).put(workers));
    }
    return kept(new TCPStore(host, options));
  }

  static int port(TCPStore store) {
    return Short.toUnsignedInt(store.getPort());
  }

  /** Returns a store that may be handed to libtorch once. */
  static Store wrap(Store counted, List<String> prefixes) {
    Store wrapped = counted;
    for (String prefix : prefixes) {
      wrapped = kept(new PrefixStore(prefix, wrapped));
    }
    return wrapped;
  }

  /** Keeps an object that libtorch uses without holding a reference to it. */
  static <P extends Pointer> P kept(P pointer) {
    KEPT.add(pointer);
    return pointer;
  }

  private static Store counted(Store fresh) {
    return kept(new PrefixStore("", kept(fresh))).getUnderlyingStore();
  }

  /**
   * A store of this process.
   *
   * @param store handle that libtorch may be given any number of times
   * @param port port of a TCP store, 0 for a file store
   * @param awaitWorkers counts this process and, on the server, waits for the others; does nothing
   *     if no number of workers was given
   */
  record Opened(Store store, int port, Runnable awaitWorkers) {}
}
