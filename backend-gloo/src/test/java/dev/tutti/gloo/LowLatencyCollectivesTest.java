package dev.tutti.gloo;

/** Tests the algorithms with few steps at all sizes. */
class LowLatencyCollectivesTest extends CollectivesTest {
  @Override
  String algorithms() {
    return "allReduce=recursive-doubling;reduce=binomial;allGather=bruck;broadcast=binomial";
  }
}
