/** The grouping of ranks by host, and the messages through which ranks discover it. */
package dev.tutti.gloo.topology;
