/** Questions from outside a job, which all its ranks answer through the store. */
@NullMarked
package dev.tutti.runtime.status;

import org.jspecify.annotations.NullMarked;
