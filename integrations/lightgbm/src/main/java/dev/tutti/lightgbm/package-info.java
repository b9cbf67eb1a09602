/** LightGBM that trains on several ranks, over a process group in place of its own sockets. */
@NullMarked
package dev.tutti.lightgbm;

import org.jspecify.annotations.NullMarked;
