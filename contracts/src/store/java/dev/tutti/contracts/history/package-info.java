/**
 * Checks of what concurrent clients of a store observe: {@link
 * dev.tutti.contracts.history.HistoryRun} makes random calls and records them, and {@link
 * dev.tutti.contracts.history.HistoryChecker} finds what no correct store would answer.
 *
 * {@snippet file="history/TcpHistoryTest.java" region="run"}
 */
@NullMarked
package dev.tutti.contracts.history;

import org.jspecify.annotations.NullMarked;
