/** What the files of a checkpoint contain: safetensors files and a manifest. No input or output. */
package dev.tutti.checkpoint.format;
