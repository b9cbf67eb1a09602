/**
 * The backend cuda: collectives and messages by kernels, through the memory that the ranks of a
 * host share.
 *
 * <p>A <em>channel</em> is memory through which kernels of several ranks work together; its kernels
 * run one after another. A <em>launcher</em> enqueues them: one for the collectives of a group, one
 * for each direction of messages between two ranks. A <em>matcher</em> finds, on the host, the
 * receive that a send belongs to. An <em>event</em> follows an operation on the device, and an
 * <em>end check</em> finds out how the operation ended there. In symmetric memory, as in c10d, a
 * channel is a number that distinguishes signals.
 */
package dev.tutti.cuda.collective;
