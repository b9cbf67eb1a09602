package dev.tutti.gloo;

/** Tests Gloo's own algorithms at all sizes; they are used if the group has a PyTorch rank. */
class WireCollectivesTest extends CollectivesTest {
  @Override
  String algorithms() {
    return "allReduce=ring;reduce=ring;allGather=ring;broadcast=binomial;reduceScatter=all-reduce";
  }
}
