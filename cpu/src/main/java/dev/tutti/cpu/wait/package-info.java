/**
 * How threads wait: they spin, then yield their cores, then sleep, and skip the slow steps if other
 * work keeps the cores busy.
 */
package dev.tutti.cpu.wait;
