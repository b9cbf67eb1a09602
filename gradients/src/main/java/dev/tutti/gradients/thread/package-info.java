/** Thread handling that this module's packages share. */
package dev.tutti.gradients.thread;
