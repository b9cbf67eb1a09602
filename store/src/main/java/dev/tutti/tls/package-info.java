/** TLS for the sockets of Tutti's own modules. */
package dev.tutti.tls;
