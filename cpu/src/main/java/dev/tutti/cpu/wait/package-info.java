/**
 * How threads wait: they spin, then yield their cores, then sleep, and leave out what takes long
 * where other work keeps the cores busy.
 */
@NullMarked
package dev.tutti.cpu.wait;

import org.jspecify.annotations.NullMarked;
