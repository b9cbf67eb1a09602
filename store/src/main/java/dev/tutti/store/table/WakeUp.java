package dev.tutti.store.table;

/**
 * Receives the single call that ends a registered wait; runs under the guard of its {@link
 * KeyTable}.
 */
@FunctionalInterface
public interface WakeUp {
  void wake();
}
