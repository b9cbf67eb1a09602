package dev.tutti.gloo;

/** Tests the collectives in shared memory, little of it, so that most tensors take many steps. */
class SharedMemoryCollectivesTest extends CollectivesTest {
  @Override
  String sharedBytes() {
    return "512K";
  }
}
