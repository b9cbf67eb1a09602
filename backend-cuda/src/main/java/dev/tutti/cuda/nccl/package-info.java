/**
 * The port to NCCL, and its adapter to the {@code libnccl.so.2} on this machine. Nothing is loaded
 * before it is requested.
 *
 * <p>A <em>communicator</em> is NCCL's connection of some ranks, which a <em>link</em> makes and a
 * <em>teardown</em> ends. A <em>launcher</em> enqueues the calls of operations into streams, in the
 * order of a group's communicator. A <em>path</em> moves the messages between two ranks in a
 * communicator of their own. A <em>guard</em> ends a call that blocks, and a <em>watch</em> an
 * operation that cannot complete.
 */
package dev.tutti.cuda.nccl;
