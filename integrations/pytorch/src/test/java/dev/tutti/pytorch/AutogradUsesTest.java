package dev.tutti.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.gradients.GradientException;
import dev.tutti.gradients.ReducerOptions;
import dev.tutti.testing.World;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.function.Consumer;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.EmbeddingImpl;
import org.bytedeco.pytorch.EmbeddingOptions;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.LinearOptions;
import org.bytedeco.pytorch.Module;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorArrayRefOptional;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;

/** What programs do to gradients and parameters besides one backward for each step. */
@World(backends = "gloo", timeoutSeconds = 240)
class AutogradUsesTest {
  private static final ReducerOptions UNUSED = ReducerOptions.DEFAULT.withUnusedParameters();

  /** Two parameters; the gradient of each is the factor that its use is multiplied by. */
  private static final class Pair extends Module {
    final Tensor left = new Tensor(register_parameter("left", torch.ones(2)));
    final Tensor right = new Tensor(register_parameter("right", torch.ones(2)));
  }

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  private static Tensor use(Tensor parameter, double factor) {
    return parameter.sum().mul(new Scalar(factor));
  }

  private static Tensor useBoth(Pair pair, double factor) {
    return use(pair.left, factor).add(use(pair.right, factor));
  }

  private static void look(Tensor loss, Tensor... parameters) {
    torch.grad(
        new TensorVector(loss),
        new TensorVector(parameters),
        new TensorVector(),
        new BoolOptional(true),
        false,
        false);
  }

  private static double gradient(Tensor parameter) {
    return Tensors.of(parameter.grad()).getDouble(1);
  }

  @World(sizes = {2, 3})
  void gradOnOneRankOrAllDoesNotDisturb(ProcessGroup group) {
    double mean = (group.size() + 1) / 2.0;
    for (int looking = 1; looking <= group.size(); looking++) {
      boolean looks = group.rank() < looking;
      Pair pair = new Pair();
      try (DataParallel parallel = new DataParallel(pair, group)) {
        for (int step = 0; step < 4; step++) {
          if (looks) {
            look(useBoth(pair, 7), pair.left, pair.right);
            look(use(pair.right, 7), pair.right);
          }
          pair.zero_grad(step % 2 == 0);
          if (looks) {
            look(use(pair.left, 7), pair.left);
          }
          useBoth(pair, group.rank() + 1.0).backward();
          if (looks) {
            look(use(pair.left, 7), pair.left);
            look(useBoth(pair, 7), pair.right, pair.left);
          }
          parallel.await();
          assertThat(gradient(pair.left)).isEqualTo(mean);
          assertThat(gradient(pair.right)).isEqualTo(mean);
        }
      }
    }
  }

  @World
  void gradWhileAParameterIsUnusedKeepsItsGradient(ProcessGroup group) {
    Pair pair = new Pair();
    try (DataParallel parallel = new DataParallel(pair, group, UNUSED)) {
      useBoth(pair, group.rank() + 1.0).backward();
      parallel.await();
      for (int step = 0; step < 2; step++) {
        if (group.rank() == 0) {
          look(use(pair.left, 7), pair.left);
        }
        use(pair.right, group.rank() + 1.0).backward();
        parallel.await();
        assertThat(gradient(pair.left)).isEqualTo(1.5);
        assertThat(gradient(pair.right)).isEqualTo(3 + 1.5 * step);
        assertThat(parallel.reducer().isUsed(0)).isFalse();
      }
    }
  }

  @World
  void gradientsWithoutNoSyncAddUpWhereLaterPassesLeaveThemOut(ProcessGroup group) {
    for (int users = 0; users <= group.size(); users++) {
      Pair pair = new Pair();
      try (DataParallel parallel = new DataParallel(pair, group, UNUSED)) {
        useBoth(pair, group.rank() + 1.0).backward();
        parallel.await();
        Tensor loss = use(pair.right, 1);
        (group.rank() < users ? loss.add(use(pair.left, group.rank() + 1.0)) : loss).backward();
        parallel.await();
        assertThat(gradient(pair.left)).isEqualTo(1.5 + users * (users + 1) / 4.0);
        assertThat(gradient(pair.right)).isEqualTo(2.5);

        pair.zero_grad(true);
        use(pair.right, 1).backward();
        parallel.await();
        assertThat(pair.left.grad().defined()).isFalse();
        (group.rank() == 0 ? useBoth(pair, 4) : use(pair.right, 4)).backward();
        parallel.await();
        assertThat(gradient(pair.left)).isEqualTo(2);
        assertThat(gradient(pair.right)).isEqualTo(5);
      }
    }
  }

  @World
  void accumulationWithNoSyncKeepsEarlierSteps(ProcessGroup group) {
    Pair pair = new Pair();
    try (DataParallel parallel = new DataParallel(pair, group, UNUSED)) {
      useBoth(pair, group.rank() + 1.0).backward();
      parallel.await();
      try (Registration _ = parallel.noSync()) {
        use(pair.left, group.rank() + 3.0).backward();
        parallel.await();
      }
      use(pair.right, 1).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(5);
      assertThat(gradient(pair.right)).isEqualTo(2.5);
    }
  }

  @World
  void backwardForSomeParametersAndBackwardWithAGraphAreReduced(ProcessGroup group) {
    Pair pair = new Pair();
    try (DataParallel parallel = new DataParallel(pair, group, UNUSED)) {
      for (int step = 1; step < 4; step++) {
        useBoth(pair, group.rank() + 1.0)
            .backward(
                new Tensor(),
                new BoolOptional(),
                false,
                new TensorArrayRefOptional(new TensorVector(pair.left)));
        parallel.await();
        assertThat(gradient(pair.left)).isEqualTo(1.5 * step);
        assertThat(pair.right.grad().defined()).isFalse();
      }
      pair.zero_grad(false);
      use(pair.left.square(), group.rank() + 1.0)
          .backward(new Tensor(), new BoolOptional(true), true, new TensorArrayRefOptional());
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(3);
    }
  }

  @World
  void aBackwardThatThrowsIsMissingOnAllRanks(ProcessGroup group) {
    Pair pair = new Pair();
    try (DataParallel parallel = new DataParallel(pair, group)) {
      Tensor twice = pair.left.square().sum();
      twice.backward();
      if (group.rank() == 1) {
        assertThatThrownBy(twice::backward).isInstanceOf(RuntimeException.class);
      }
      assertThatThrownBy(parallel::await)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining("'right' is missing");
    }
  }

  private static void requireFailure(
      ProcessGroup group, Consumer<Pair> before, Consumer<Pair> after, String message) {
    ProcessGroup own = group.split(0, group.rank()).orElseThrow();
    Pair pair = new Pair();
    before.accept(pair);
    try (DataParallel parallel = new DataParallel(pair, own, UNUSED.withDigest(2))) {
      use(pair.right, 1).backward();
      parallel.await();
      after.accept(pair);
      use(pair.right, 1).backward();
      assertThatThrownBy(parallel::await)
          .isInstanceOf(GradientException.class)
          .hasMessageContaining(message);
    }
    own.close();
  }

  @World
  void parametersThatAreUnfrozenLaterAreNamed(ProcessGroup group) {
    for (int rank = 0; rank <= group.size(); rank++) {
      boolean changes = group.rank() == rank || rank == group.size();
      requireFailure(
          group,
          pair -> pair.left.set_requires_grad(false),
          pair -> pair.left.set_requires_grad(changes),
          "'left' required no gradient when DataParallel was created");
    }
  }

  @World
  void parametersThatMoveLaterAreNamed(ProcessGroup group) {
    String message = "'left' got other memory or another type";
    requireFailure(
        group,
        _ -> {},
        pair -> {
          if (group.rank() == 1) {
            pair.left.set_data(torch.ones(2));
          }
        },
        message);
    requireFailure(group, _ -> {}, pair -> pair.to(torch.ScalarType.Double, false), message);
  }

  @World
  void gradientsThatChangeAfterBackwardAreNamed(ProcessGroup group) {
    for (int kind = 0; kind < 3; kind++) {
      ProcessGroup own = group.split(0, group.rank()).orElseThrow();
      Pair pair = new Pair();
      try (DataParallel parallel = new DataParallel(pair, own)) {
        for (int step = 0; step < 2; step++) {
          useBoth(pair, 2 + 2 * group.rank()).backward();
          parallel.await();
          pair.zero_grad(kind == 2);
        }
        use(pair.left, 2).add(use(pair.right, 2)).backward();
        if (group.rank() == 1) {
          change(pair, kind);
        }
        assertThatThrownBy(parallel::await)
            .isInstanceOf(GradientException.class)
            .hasMessageContaining("the program changed the gradient of the parameter 'right'");
      }
      own.close();
    }
  }

  private static void change(Pair pair, int kind) {
    switch (kind) {
      case 0 -> pair.zero_grad(false);
      case 1 -> pair.right.grad().mul_(new Scalar(2.0));
      default -> pair.right.mutable_grad().put(torch.ones(2));
    }
  }

  @World
  void gradientsThatAreViewsOfTheirBucketsAreReducedByTheirStrides(ProcessGroup group) {
    Module module = new Module();
    Tensor square = new Tensor(module.register_parameter("square", torch.ones(2, 2)));
    Tensor factors = Tensors.toTorch(dev.tutti.Tensor.of(1f, 2f, 3f, 4f)).view(2, 2);
    try (DataParallel parallel = new DataParallel(module, group)) {
      for (int step = 0; step < 3; step++) {
        square.mul(factors.mul(new Scalar(2.0 + 2 * group.rank()))).sum().backward();
        parallel.await();
        assertThat(Tensors.of(square.grad()).toFloatArray()).containsExactly(3, 6, 9, 12);
        module.zero_grad(false);
        if (group.rank() == step) {
          square.mutable_grad().put(square.grad().t());
        }
      }
    }
  }

  @World
  void registrationsOfNoSyncMayBeNested(ProcessGroup group) {
    Pair pair = new Pair();
    DataParallel parallel = new DataParallel(pair, group);
    try (parallel) {
      Registration outer = parallel.noSync();
      parallel.noSync().close();
      useBoth(pair, group.rank()).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(group.rank());
      outer.close();
      Registration first = parallel.noSync();
      Registration second = parallel.noSync();
      first.close();
      first.close();
      useBoth(pair, group.rank()).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(2 * group.rank());
      second.close();
      useBoth(pair, group.rank()).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(1.5);
    }
    assertThatThrownBy(parallel::noSync).hasMessageContaining("is closed");
  }

  @World
  void aParameterHasOneOwner(ProcessGroup group) {
    Pair pair = new Pair();
    Pair other = new Pair();
    other.register_parameter("theirs", pair.right);
    try (DataParallel parallel = new DataParallel(pair, group)) {
      for (Module module : List.of(pair, other)) {
        assertThatThrownBy(() -> new DataParallel(module, group))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("belongs to another DataParallel that is open");
      }
      useBoth(pair, group.rank()).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(0.5);
    }
    pair.zero_grad(true);
    try (DataParallel parallel = new DataParallel(other, group)) {
      useBoth(other, group.rank()).add(use(pair.right, group.rank())).backward();
      parallel.await();
      assertThat(gradient(pair.right)).isEqualTo(0.5);
    }
  }

  @World
  void gradientsAreThoseOfTheModuleWhateverTheOptions(ProcessGroup group) {
    Pair pair = new Pair();
    ReducerOptions options =
        ReducerOptions.DEFAULT.withGradients(
            List.of(dev.tutti.Tensor.of(0f, 0f), dev.tutti.Tensor.of(0f, 0f)));
    try (DataParallel parallel = new DataParallel(pair, group, options)) {
      useBoth(pair, group.rank()).backward();
      parallel.await();
      assertThat(gradient(pair.left)).isEqualTo(0.5);
    }
  }

  @World
  void parametersThatDriftApartAreNamed(ProcessGroup group) {
    requireFailure(
        group,
        _ -> {},
        pair -> pair.left.detach().add_(new Scalar(1e-6 * group.rank())),
        "rank 0 has 'left' of float32[2] with checksum");
    requireFailure(
        group,
        pair -> pair.left.set_requires_grad(false),
        pair -> pair.left.detach().add_(new Scalar(1e-6 * group.rank())),
        "rank 0 has 'left' of float32[2] with checksum");
    requireFailure(
        group,
        _ -> {},
        pair ->
            pair.register_parameter(
                "late", torch.full(new long[] {1}, new Scalar((double) group.rank()))),
        "rank 0 has 'late' of ");
  }

  @World
  void equalParametersPassTheDigest(ProcessGroup group) {
    Pair pair = new Pair();
    try (DataParallel parallel =
        new DataParallel(pair, group, ReducerOptions.DEFAULT.withDigest(1))) {
      for (int step = 0; step < 3; step++) {
        useBoth(pair, group.rank()).backward();
        parallel.await();
        pair.left.detach().sub_(pair.left.grad());
      }
      assertThat(Tensors.of(pair.left).toFloatArray()).containsOnly(-2);
    }
  }

  @World
  void sparseGradientsBecomeDenseMeans(ProcessGroup group) {
    EmbeddingOptions options = new EmbeddingOptions(4, 2);
    options.sparse().put(true);
    EmbeddingImpl embedding = new EmbeddingImpl(options);
    try (DataParallel parallel = new DataParallel(embedding, group)) {
      for (int step = 0; step < 3; step++) {
        embedding.zero_grad(step == 2);
        Tensor index =
            torch.full(
                new long[] {1},
                new Scalar((long) group.rank()),
                new TensorOptions(torch.ScalarType.Long));
        embedding.forward(index).sum().backward();
        parallel.await();
        assertThat(Tensors.of(embedding.weight().grad()).toFloatArray())
            .containsExactly(0.5f, 0.5f, 0.5f, 0.5f, 0, 0, 0, 0);
      }
    }
  }

  @World
  void gradientsThatAProgramKeepsOutliveTheirBuckets(ProcessGroup group) {
    LinearOptions options = new LinearOptions(1 << 11, 1 << 11);
    options.bias().put(false);
    LinearImpl last = new LinearImpl(options);
    LinearImpl first = new LinearImpl(options);
    Module both = new Module();
    both.register_module("last", last);
    both.register_module("first", first);
    Tensor early;
    Tensor late;
    DataParallel parallel =
        new DataParallel(both, group, ReducerOptions.DEFAULT.withBucketBytes(1, 1));
    try (parallel) {
      Tensor input = torch.ones(1, 1 << 11);
      last.forward(input).add(first.forward(input)).sum().backward();
      early = new Tensor(first.weight().grad());
      parallel.await(); // forms buckets anew
      late = new Tensor(first.weight().grad());
    }
    try (Arena arena = Arena.ofShared()) {
      for (int i = 0; i < 8; i++) {
        dev.tutti.Tensor.allocate(arena, DType.FLOAT32, 1 << 22).fill(7);
      }
      assertThat(Tensors.of(early).getFloat(1 << 21)).isEqualTo(1);
      assertThat(Tensors.of(late).getFloat(1 << 21)).isEqualTo(1);
    }
    assertThatThrownBy(parallel::await)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }
}
