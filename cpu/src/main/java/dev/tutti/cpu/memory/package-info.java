/** Memory that the processes of a host share. */
package dev.tutti.cpu.memory;
