package dev.tutti.cuda.gloo;

import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;

/** A group that a test constructs. */
record TestGlooGroup(
    BackendContext context, Backend host, boolean isAllTutti, boolean isOpenedByAll)
    implements GlooGroup {}
