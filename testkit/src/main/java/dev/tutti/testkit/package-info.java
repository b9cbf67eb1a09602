/** What only this project's own tests use: certificates, file systems and allocation counts. */
@NullMarked
package dev.tutti.testkit;

import org.jspecify.annotations.NullMarked;
