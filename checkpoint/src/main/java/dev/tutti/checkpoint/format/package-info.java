/** What the files of a checkpoint contain: safetensors files and a manifest. No input or output. */
@NullMarked
package dev.tutti.checkpoint.format;

import org.jspecify.annotations.NullMarked;
