/**
 * LightGBM training on several ranks, over a process group in place of its own sockets.
 *
 * <p>Begin with {@link dev.tutti.lightgbm.LightGbmNetwork}:
 *
 * {@snippet file="dev/tutti/lightgbm/LightGbmSnippets.java" region="train"}
 */
@NullMarked
package dev.tutti.lightgbm;

import org.jspecify.annotations.NullMarked;
