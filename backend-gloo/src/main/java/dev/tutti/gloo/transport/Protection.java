package dev.tutti.gloo.transport;

import dev.tutti.Settings;
import dev.tutti.store.JobToken;

/**
 * Says how a rank protects its connections.
 *
 * @param token what both ends of a connection prove to each other; {@link JobToken#NONE} for
 *     nothing
 */
record Protection(JobToken token) {
  /** Is the flag of a rank with a token, in {@link PeerAddress}. */
  static final long TOKEN = 1;

  /**
   * Reads the settings.
   *
   * @param settings all settings
   */
  static Protection of(Settings settings) {
    return new Protection(settings.get(JobToken.SETTING));
  }

  /** Tells whether there is anything to prove on a new connection. */
  boolean isOn() {
    return token.isSet();
  }

  /** Returns what a rank publishes of this. */
  long flags() {
    return token.isSet() ? TOKEN : 0;
  }
}
