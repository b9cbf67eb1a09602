/** Device tensors in Gloo groups: copies to the host and back, or the work of the backend cuda. */
package dev.tutti.cuda.gloo;
