/** Questions from outside a job, which all its ranks answer through the store. */
package dev.tutti.runtime.status;
