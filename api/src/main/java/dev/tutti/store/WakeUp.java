package dev.tutti.store;

/**
 * Receives the one call that ends a registered wait; runs under the guard of its {@link KeyTable}.
 */
@FunctionalInterface
interface WakeUp {
  void wake();
}
