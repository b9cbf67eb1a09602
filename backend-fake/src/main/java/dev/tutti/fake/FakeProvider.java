package dev.tutti.fake;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Setting;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The provider of the backend "fake", which communicates with nobody: any rank of a world of any
 * size runs alone, in one process (c10d: {@code FakeProcessGroup}). It is meant for dry runs of
 * programs, not for their results.
 *
 * <p>In plain mode, reductions, broadcasts and messages leave tensors unchanged, and operations
 * that gather, scatter or exchange copy this rank's own data. With uniform ranks, the results are
 * those that real ranks would get if all of them had the same data as this one. Tensors on devices
 * are never touched.
 */
public final class FakeProvider implements BackendProvider {
  /** The name of the backend. */
  public static final String NAME = "fake";

  /** Whether results are as if all ranks had equal data. */
  public static final Setting<Boolean> UNIFORM_RANKS =
      Setting.flag(
          "TUTTI_FAKE_UNIFORM_RANKS",
          false,
          "whether the fake backend gives results as if all ranks had equal data");

  /** Whether every collective fails; sends and receives still work. */
  public static final Setting<Boolean> ERROR_ON_COLLECTIVE =
      Setting.flag(
          FakeBackend.ERROR_ON_COLLECTIVE,
          false,
          "whether every collective of the fake backend fails");

  private final @Nullable Boolean uniformRanks;
  private final @Nullable Boolean errorOnCollective;

  /** Creates a provider that uses the settings. */
  public FakeProvider() {
    this(null, null);
  }

  private FakeProvider(@Nullable Boolean uniformRanks, @Nullable Boolean errorOnCollective) {
    this.uniformRanks = uniformRanks;
    this.errorOnCollective = errorOnCollective;
  }

  /**
   * Returns a provider that does not use the setting {@link #UNIFORM_RANKS}.
   *
   * @param uniform whether results are as if all ranks had equal data
   */
  public FakeProvider withUniformRanks(boolean uniform) {
    return new FakeProvider(uniform, errorOnCollective);
  }

  /**
   * Returns a provider that does not use the setting {@link #ERROR_ON_COLLECTIVE}.
   *
   * @param error whether every collective fails
   */
  public FakeProvider withErrorOnCollective(boolean error) {
    return new FakeProvider(uniformRanks, error);
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu", "cuda");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return Capabilities.ofVersion1(Feature.UNEVEN_PARTS, Feature.TAGS);
  }

  @Override
  public boolean movesData() {
    return false;
  }

  @Override
  public boolean isAutoSelectable(String deviceType) {
    return false;
  }

  @Override
  public List<Setting<?>> settings() {
    return List.of(UNIFORM_RANKS, ERROR_ON_COLLECTIVE);
  }

  @Override
  public Backend create(BackendContext context) {
    boolean uniform = uniformRanks == null ? context.settings().get(UNIFORM_RANKS) : uniformRanks;
    boolean error =
        errorOnCollective == null ? context.settings().get(ERROR_ON_COLLECTIVE) : errorOnCollective;
    FakeCopies copies = uniform ? new UniformRanks(context.size()) : new FakeCopies();
    return new FakeBackend(context.rank(), context.size(), copies, error);
  }
}
