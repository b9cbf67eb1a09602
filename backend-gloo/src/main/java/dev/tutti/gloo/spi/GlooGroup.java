package dev.tutti.gloo.spi;

import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;

/**
 * Tells who serves a kind of device which group that is.
 *
 * @param context rank, size and settings, and the device where the group's is of that kind
 * @param host runs the group's operations on tensors in host memory
 * @param isAllTutti whether all ranks are of Tutti; if not, each operation has to make the calls of
 *     {@code host} that c10d makes for it
 * @param isOpenedByAll whether all ranks are of Tutti, gave a device of this kind and open it now,
 *     so that they can meet in the context's store
 */
public record GlooGroup(
    BackendContext context, Backend host, boolean isAllTutti, boolean isOpenedByAll) {}
