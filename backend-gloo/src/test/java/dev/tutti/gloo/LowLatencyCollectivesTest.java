package dev.tutti.gloo;

/** Tests the algorithms of few steps at all sizes. */
class LowLatencyCollectivesTest extends CollectivesTest {
  @Override
  String algorithms() {
    return "allReduce=recursive-doubling;reduce=binomial;allGather=bruck;broadcast=binomial";
  }
}
