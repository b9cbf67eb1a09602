package dev.tutti.fake;

import dev.tutti.Capabilities;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.DeviceSession;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.PlanRequest;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Provides another provider's backends, wrapped in decorators. */
abstract class DecoratedProvider implements BackendProvider {
  final BackendProvider inner;

  DecoratedProvider(BackendProvider inner) {
    this.inner = inner;
  }

  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public int spiVersion() {
    return inner.spiVersion();
  }

  @Override
  public Set<String> deviceTypes() {
    return inner.deviceTypes();
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return inner.capabilities(deviceType);
  }

  @Override
  public boolean isOneForAllDevices() {
    return inner.isOneForAllDevices();
  }

  @Override
  public boolean movesData() {
    return inner.movesData();
  }

  @Override
  public Optional<String> unusableReason(Settings settings) {
    return inner.unusableReason(settings);
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return inner.isAutoSelectable(deviceType);
  }

  @Override
  public List<Setting<?>> settings() {
    return inner.settings();
  }

  @Override
  public List<String> findings(Settings settings) {
    return inner.findings(settings);
  }

  @Override
  public Optional<OperationPlan> plan(PlanRequest request) {
    return inner.plan(request);
  }

  @Override
  public int deviceCount() {
    return inner.deviceCount();
  }

  @Override
  public DeviceSession openDevice(int index) {
    return inner.openDevice(index);
  }
}
