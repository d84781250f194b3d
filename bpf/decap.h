// SPDX-License-Identifier: Apache-2.0
// Puts the decapsulation program on an interface of a backend, finds it again, takes it off.
//
// All state is in the kernel: the program on the interface and its maps. Nothing is pinned, so it works
// without bpffs and inside namespaces that hide it. A program is ours when its name and its
// configuration map say so; everything else on the interface is left alone.
#pragma once

#include "bpf/bpf_shared.h"

#include <stdbool.h>
#include <stddef.h>

enum decap_mode {
	DECAP_MODE_AUTO = 0, // native, else generic
	DECAP_MODE_NATIVE,   // XDP in the driver
	DECAP_MODE_GENERIC,  // XDP after the driver made an skb
	DECAP_MODE_TC,       // tc ingress
	DECAP_MODE_COUNT,
};

// Exit codes of ringway-decap; the same numbers mean the same for all programs of the project.
enum decap_exit {
	DECAP_EXIT_OK = 0,
	DECAP_EXIT_FAILED = 1,
	DECAP_EXIT_USAGE = 2,
	DECAP_EXIT_NOT_FOUND = 3,
	DECAP_EXIT_CONFLICT = 4,
	DECAP_EXIT_PERMISSION = 9,
};

// Why a call failed: a sentence for people that says what, where and the way out.
struct decap_error {
	enum decap_exit exit;
	char text[320];
};

struct decap_settings {
	enum decap_mode mode;
	__u32 flags;      // DECAP_FLAG_*
	__u16 gue_port;   // host byte order
	size_t vip_count; // 1..DECAP_VIPS_MAX
	size_t local_count;
	struct decap_prefix vips[DECAP_VIPS_MAX];
	struct decap_address locals[DECAP_LOCALS_MAX]; // where tunnels end
};

// A program of ours on an interface, with descriptors of its maps. decap_close() it.
struct decap {
	int ifindex;
	enum decap_mode mode;
	__u32 program_id;
	int program_fd;
	int config_fd;
	int locals_fd;
	int vips_fd;
	int counters_fd;
	struct decap_config config;
	unsigned char tag[8]; // of the program's code
};

enum decap_change {
	DECAP_ATTACHED = 0, // was not there
	DECAP_UPDATED,      // the same code was there: its maps were changed, counters go on
	DECAP_REPLACED,     // another build was there: replaced in one step, counters start again
};

// Finds our program on an interface.
// Returns 0; -ENOENT when there is none of ours; another error of the kernel (-EPERM, -ENODEV).
// *ret is untouched on failure.
int decap_find(int ifindex, struct decap *ret);

// Closes the descriptors; the program stays where it is.
void decap_close(struct decap *decap);

// Puts the program on an interface, or brings the one that is there to these settings; both without a
// moment in which packets pass by it. Running it twice is the same as once.
// Returns 0 and what was done in *ret_change, or -errno and the reason in *ret_error; then what was
// attached before still is, as it was.
int decap_attach(int ifindex, const struct decap_settings *settings, enum decap_change *ret_change,
	struct decap_error *ret_error);

// Takes off exactly what decap_attach() put there: our program if it is still the one that was found, and
// the clsact qdisc if attach made it and nobody uses it. Returns 0, -ENOENT when there is nothing of ours.
int decap_detach(int ifindex, struct decap_error *ret_error);

// Sums a program's counters over all CPUs. Returns 0 or -errno; then *ret is undefined.
int decap_read_counters(const struct decap *decap, struct decap_count ret[DECAP_COUNTER_COUNT]);

// "native", "generic", "tc".
const char *decap_mode_name(enum decap_mode mode);

// Sets an error; returns -code.
int decap_fail(struct decap_error *error, enum decap_exit exit, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
