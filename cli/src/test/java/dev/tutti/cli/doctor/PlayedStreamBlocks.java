package dev.tutti.cli.doctor;

import dev.tutti.Device;
import dev.tutti.StreamBlock;
import dev.tutti.spi.StreamBlockProvider;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * The provider of stream blocks for a device that a test simulates; only tests that name it find
 * it.
 */
public final class PlayedStreamBlocks implements StreamBlockProvider {
  static volatile Optional<String> reason = Optional.empty();

  /** Creates the provider. */
  public PlayedStreamBlocks() {}

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String deviceType() {
    return "played";
  }

  @Override
  public StreamBlock block(Duration timeout) {
    throw new UnsupportedOperationException();
  }

  @Override
  public StreamBlock block(Device device, Duration timeout) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Optional<String> unusableReason() {
    return reason;
  }

  @Override
  public List<String> findings() {
    return List.of("played:0 with 1 GiB", "no links");
  }
}
