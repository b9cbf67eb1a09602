/** Ranks of Tutti that share a job with ranks of Python's {@code torch.distributed}. */
@NullMarked
package dev.tutti.interop.pytorch;

import org.jspecify.annotations.NullMarked;
