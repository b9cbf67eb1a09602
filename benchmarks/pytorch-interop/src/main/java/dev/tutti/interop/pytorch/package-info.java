/** Ranks of Tutti that stand in one job with ranks of Python's {@code torch.distributed}. */
@NullMarked
package dev.tutti.interop.pytorch;

import org.jspecify.annotations.NullMarked;
