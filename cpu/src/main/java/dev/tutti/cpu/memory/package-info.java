/** Memory that the processes of a host share. */
@NullMarked
package dev.tutti.cpu.memory;

import org.jspecify.annotations.NullMarked;
