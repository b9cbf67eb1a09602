package dev.tutti.gloo;

/** Tests the algorithms that send few bytes at all sizes. */
class LowTrafficCollectivesTest extends CollectivesTest {
  @Override
  String algorithms() {
    return "allReduce=pipelined-halving-doubling;reduce=ring;allGather=ring;broadcast=chain";
  }
}
