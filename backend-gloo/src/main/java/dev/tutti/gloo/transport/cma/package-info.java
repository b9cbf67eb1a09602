/** Access to the memory of other processes on the host (cross memory attach). */
package dev.tutti.gloo.transport.cma;
