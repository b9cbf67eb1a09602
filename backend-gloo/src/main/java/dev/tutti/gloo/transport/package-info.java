/**
 * Connections between the ranks of a group, and the messages that they carry.
 *
 * <p>The {@code ProgressEngine} owns the lock and the selector, and handles only the bytes of pairs
 * ({@code PairTraffic}). A {@code Pair} and its {@code Connection} run the protocol with one peer.
 * They pass to a {@code PairListener} what concerns others: {@code Pairs}, which connects all pairs
 * and decides what the end of one means. {@code Transport} puts the parts together, and an {@code
 * Endpoint} begins and awaits messages.
 */
package dev.tutti.gloo.transport;
