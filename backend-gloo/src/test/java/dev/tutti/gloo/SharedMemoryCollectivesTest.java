package dev.tutti.gloo;

/** Tests the collectives in shared memory that is so small that most tensors take many steps. */
class SharedMemoryCollectivesTest extends CollectivesTest {
  @Override
  String sharedBytes() {
    return "512K";
  }
}
