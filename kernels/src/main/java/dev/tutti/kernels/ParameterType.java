package dev.tutti.kernels;

/** The types of parameters; structures are passed by value. */
public enum ParameterType {
  /** An address in device memory or in host memory that the device can see. */
  POINTER(8),
  /** An unsigned 32-bit number. */
  UINT32(4),
  /** An unsigned 64-bit number. */
  UINT64(8),
  /** The structure that {@link ChannelLayout#writeChannel} writes. */
  CHANNEL(ChannelLayout.CHANNEL_BYTES),
  /** The structure of {@link ReduceCall}. */
  REDUCE_CALL(ReduceCall.BYTES),
  /** The structure of {@link ExchangeCall}. */
  EXCHANGE_CALL(ExchangeCall.BYTES),
  /** The addresses of the signal pads of up to {@link ChannelLayout#MAX_RANKS} ranks. */
  SIGNAL_PADS(8 * ChannelLayout.MAX_RANKS);

  private final int byteSize;

  ParameterType(int byteSize) {
    this.byteSize = byteSize;
  }

  /** Returns the size in bytes. */
  public int byteSize() {
    return byteSize;
  }
}
