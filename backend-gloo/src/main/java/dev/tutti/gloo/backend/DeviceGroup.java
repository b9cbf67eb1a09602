package dev.tutti.gloo.backend;

import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;

/** The group for which a kind of device is opened. */
record DeviceGroup(BackendContext context, Backend host, boolean isAllTutti, boolean isOpenedByAll)
    implements GlooGroup {}
