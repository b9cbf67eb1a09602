/** The settings of the CUDA backends. */
package dev.tutti.cuda.settings;
