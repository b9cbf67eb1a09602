package dev.tutti.gloo;

import dev.tutti.Settings;

/** Runs the contract suite with ranks of one host that do not share memory. */
class GlooSocketsContractTest extends GlooContractTest {
  @Override
  protected Settings settings() {
    return GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), "0");
  }
}
