package dev.tutti.gloo;

/** Tests Gloo's own algorithms, which are used when there is a rank of PyTorch, at all sizes. */
class WireCollectivesTest extends CollectivesTest {
  @Override
  String algorithms() {
    return "allReduce=ring;reduce=ring;allGather=ring;broadcast=binomial;reduceScatter=all-reduce";
  }
}
