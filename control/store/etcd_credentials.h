// SPDX-License-Identifier: Apache-2.0
// What this node shows to etcd and what it trusts: password, client certificate and key, authorities.
//
// The files are read with every login and every new connection, so one that is replaced is used without a restart.
// A file with a secret (key, password) is refused when others can read it: it is to be of mode 0400 or 0600, or, if
// root owns it, 0440 or 0640 for the group that ringwayd runs in.
#pragma once

#include "control/config/config.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#define ETCD_PASSWORD_BYTES 512u // with the NUL

// Looks at all files that the configuration names.
// Returns 0, or -errno with a sentence in ret_error (bytes of room).
int etcd_credentials_check(const struct config_store *config, char *ret_error, size_t bytes);

// Reads the first line of the password file. The caller clears ret (explicit_bzero()) when done.
// Returns 0; -EACCES with a sentence in ret_error.
int etcd_password_read(const struct config_store *config, char ret[static ETCD_PASSWORD_BYTES],
	char *ret_error, size_t bytes);

// Sets what a connection trusts and shows.
void etcd_credentials_use(const struct config_tls *tls, CURL *curl);

// A connection that failed, as libcurl tells it.
struct etcd_failure {
	const char *endpoint;
	CURLcode code;
	const char *detail; // libcurl's own words; may be ""
	bool silent;        // a connection was made for it, and closed before a byte came back
};

// Says in a sentence why a connection failed and what to do.
// Returns whether it is a fault of certificates or keys: no waiting helps, until somebody changes something.
bool etcd_failure_tell(const struct config_store *config, const struct etcd_failure *failure,
	char *ret_error, size_t bytes);
