package dev.tutti.peer.libtorch;

import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.ProcessGroupGloo;
import org.bytedeco.pytorch.Store;
import org.bytedeco.pytorch.gloo.Device;

/** A Gloo process group of libtorch, with the facts that the operations need. */
record PeerGroup(ProcessGroupGloo gloo, Device device, int rank, int size, int timeoutMillis) {

  static PeerGroup create(Store store, Device device, int rank, int size, int timeoutMillis) {
    ProcessGroupGloo.Options options =
        ProcessGroupGloo.Options.create(new Milliseconds(timeoutMillis));
    options.devices().push_back(device);
    ProcessGroupGloo gloo = PeerStores.kept(new ProcessGroupGloo(store, rank, size, options));
    return new PeerGroup(gloo, device, rank, size, timeoutMillis);
  }

  static Device device(PeerArguments arguments) {
    return ProcessGroupGloo.createDeviceForHostname(arguments.host(), arguments.lazy());
  }
}
