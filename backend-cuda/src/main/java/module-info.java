import org.jspecify.annotations.NullMarked;

/** NVIDIA GPUs: devices, streams, memory, stream blocks, and collectives. */
@NullMarked
module dev.tutti.cuda {
  requires transitive dev.tutti;
  requires dev.tutti.cpu;
  requires dev.tutti.store;
  requires dev.tutti.gloo;
  requires dev.tutti.kernels;
  requires static transitive org.jspecify;
  requires jcuda;

  exports dev.tutti.cuda;
  exports dev.tutti.cuda.ipc;

  provides dev.tutti.spi.BackendProvider with
      dev.tutti.cuda.provider.CudaBackendProvider,
      dev.tutti.cuda.provider.NcclBackendProvider;
  provides dev.tutti.spi.DeviceTensors with
      dev.tutti.cuda.provider.CudaDeviceTensors;
  provides dev.tutti.gloo.spi.GlooDeviceProvider with
      dev.tutti.cuda.provider.GlooCudaProvider;
  provides dev.tutti.spi.StreamBlockProvider with
      dev.tutti.cuda.block.CudaStreamBlockProvider;
}
