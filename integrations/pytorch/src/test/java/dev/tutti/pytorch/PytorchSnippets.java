package dev.tutti.pytorch;

import dev.tutti.ProcessGroup;
import org.bytedeco.pytorch.LinearImpl;
import org.bytedeco.pytorch.SGD;
import org.bytedeco.pytorch.SGDOptions;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;

/** The compiled example of the package; {@link GuideTest} runs similar code. */
final class PytorchSnippets {
  private PytorchSnippets() {}

  static void train(ProcessGroup group) {
    // @start region="train"
    LinearImpl module = new LinearImpl(8, 2);
    SGD optimizer = new SGD(module.parameters(), new SGDOptions(0.1));
    try (DataParallel parallel = new DataParallel(module, group)) {
      optimizer.zero_grad(false); // keeps gradients where they are, in the buckets
      Tensor input = torch.randn(16, 8); // this rank's part of the batch
      module.forward(input).square().mean().backward();
      parallel.await(); // now the gradients are the means of all ranks
      optimizer.step();
    }
    // @end
  }
}
