// SPDX-License-Identifier: Apache-2.0
// Calls to etcd's v3 JSON gateway over HTTP(S): endpoints tried in turn, a token where users are on, base64.
//
// A member that dies, hangs, has lost its leader or the token costs a call time, not its answer: it is sent again, to the
// next member, or after one more login. So a write may be done twice, and the first time without our hearing of
// it; what that may spoil is a transaction whose comparison finds its own work, see etcd_client.sends.
//
// The gateway answers every call with one JSON object; keys and values are base64, 64-bit numbers are strings.
// Context: one thread for a client, except etcd_client_interrupt().
#pragma once

#include "control/config/config.h"
#include "control/store/store.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In which one call has to be done, all endpoints together: longer than an election. The same for a store that is known
// to be lost; then for a single attempt, and for its connection, TLS included, across an ocean.
#define ETCD_CALL_MS    5000u
#define ETCD_PROBE_MS   1000u
#define ETCD_TRY_MS     2000u
#define ETCD_CONNECT_MS 1500u

#define ETCD_ERROR_BYTES STORE_ERROR_BYTES

struct etcd_client {
	const struct config_store *config; // must outlive the client
	CURL *curl;
	uint32_t endpoint;      // tried first: the one that answered last, at first any
	char *token;            // NULL: none yet, or no user configured; "": etcd has users off
	uint64_t down_until_ms; // CLOCK_MONOTONIC; until then calls fail at once
	uint32_t down_count;    // calls that failed one after the other
	int down_rc;            // with what
	// How often the last call was put on a connection; more than once: its write may have been done before.
	uint32_t sends;
	char detail[CURL_ERROR_SIZE]; // libcurl's words for the attempt that goes on
	char error[ETCD_ERROR_BYTES]; // of the last call that failed: a sentence
};

// Returns 0 or -ENOMEM. etcd_client_close() takes a client that was opened or zeroed.
int etcd_client_open(struct etcd_client *client, const struct config_store *config);
void etcd_client_close(struct etcd_client *client);

// Sends request (stolen) to /v3/PATH and waits for the answer.
// While no endpoint answers or lets the user in, later calls fail at once for a jittered 0.25 to 4 s, and then try for
// ETCD_PROBE_MS, so that a lost store does not stop its callers again and again.
// Returns 0 and a new reference in *ret_reply; -EACCES: etcd refuses the user; -EIO: no endpoint could do it, or it
// is not known; -EPROTO: an answer that is none; -EREMOTEIO: etcd refuses the request.
int etcd_call(struct etcd_client *client, const char *path, json_t *request, json_t **ret_reply);

// Prepares a handle for a POST to an endpoint, TLS and token included; *ret_headers is the caller's to free.
// For etcd_call() and the watch.
int etcd_client_prepare(struct etcd_client *client, CURL *curl, const char *path, uint32_t endpoint,
	struct curl_slist **ret_headers);

// Asks for a token if the configuration has a user and there is none. Returns 0 or less.
int etcd_client_login(struct etcd_client *client);

// Forgets the token, so that the next call logs in.
void etcd_client_logout(struct etcd_client *client);

// A random wait of up to most milliseconds, so that nodes do not come back all at once.
uint32_t etcd_jitter_ms(uint32_t most);
uint64_t etcd_now_ms(void); // CLOCK_MONOTONIC

// base64 of bytes as a JSON string, and back. etcd_decode() returns a NUL-terminated copy, the caller's to free, or NULL.
json_t *etcd_encode(const void *bytes, size_t length);
char *etcd_decode(const json_t *text, size_t *ret_length);

// A 64-bit number that the gateway wrote as a string (or left out: 0).
uint64_t etcd_number(const json_t *object, const char *key);
