// SPDX-License-Identifier: Apache-2.0
// Cutovers in the store: one key a pool, changed by compare-and-swap, every change in the audit log.
#pragma once

#include "control/cutover/machine.h"
#include "control/store/store.h"

#define FLEET_CUTOVER_PREFIX "cutover/"
#define FLEET_CUTOVERS_MAX   64u

// A cutover and the text that it was read from, which is what a swap compares.
struct fleet_cutover {
	struct cutover cutover;
	char *text;
};

struct fleet_cutovers {
	struct fleet_cutover *items[FLEET_CUTOVERS_MAX];
	uint32_t count;
};

// Reads the cutover of a pool. ret_error: STORE_ERROR_BYTES, a sentence.
// Returns 0; -ENOENT: the pool has none; -EINVAL: what stands there is none; the store's errors.
int fleet_cutover_read(
	struct store *store, const char *pool, struct fleet_cutover **ret, char *ret_error);

// Reads all of them. Those that cannot be read are left out, and ret_error names the last such.
// Returns 0 or the store's -errno; *ret is then untouched.
int fleet_cutovers_read(struct store *store, struct fleet_cutovers *ret, char *ret_error);

void fleet_cutover_free(struct fleet_cutover *cutover);
void fleet_cutovers_free(struct fleet_cutovers *cutovers);

// Puts next in the place of before (NULL: there is none yet).
// Returns 0; -ESTALE: somebody else was faster, read again; the store's errors: not known to be written.
int fleet_cutover_swap(struct store *store, const struct fleet_cutover *before,
	const struct cutover *next, char *ret_error);

// As text, as the store holds it; the caller frees it. NULL when memory is short.
char *fleet_cutover_text(const struct cutover *cutover);

// From text, as a local copy holds it. Returns NULL when it is none.
struct fleet_cutover *fleet_cutover_parse(const char *text, size_t length, char *ret_error);

// What happened, for the audit log.
struct fleet_event {
	const char *verb;  // "cutover.start", "cutover.halt"
	const char *actor; // who asked, or "conductor NODE"
	const char *node;  // where
	const char *reason;
	const char *result;           // the sentence that the actor saw; NULL: none
	const struct cutover *before; // NULL: there was none
	const struct cutover *after;
};

// Writes an event down: who, what, why, from where to where, what was planned. Returns 0 or -errno.
int fleet_audit(struct store *store, const struct fleet_event *event);
