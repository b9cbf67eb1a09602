/** Stream blocks: kernels that hold a stream until the host releases it. */
package dev.tutti.cuda.block;
