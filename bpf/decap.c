// SPDX-License-Identifier: Apache-2.0
#include "bpf/decap.h"

#include "bpf/decap.skel.h"
#include "bpf/program.h"
#include "bpf/tc_hook.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Our place among the filters of the hook: early, and not where a first filter without a number lands.
#define TC_HANDLE   1
#define TC_PRIORITY 50

enum {
	MAP_CONFIG,
	MAP_LOCALS,
	MAP_VIPS,
	MAP_COUNTERS,
	MAP_COUNT,
};

int decap_fail(struct decap_error *error, enum decap_exit exit, int code, const char *format, ...)
{
	va_list arguments;

	error->exit = exit;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return -code;
}

const char *decap_mode_name(enum decap_mode mode)
{
	static const char *const names[DECAP_MODE_COUNT] = {
		[DECAP_MODE_AUTO] = "auto",
		[DECAP_MODE_NATIVE] = "native",
		[DECAP_MODE_GENERIC] = "generic",
		[DECAP_MODE_TC] = "tc",
	};

	return names[mode];
}

static const char *program_name(enum decap_mode mode)
{
	return mode == DECAP_MODE_TC ? DECAP_TC_NAME : DECAP_XDP_NAME;
}

static __u32 xdp_flags(enum decap_mode mode)
{
	return mode == DECAP_MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
}

// Opens a program by id. Returns -ENOENT when it is not ours.
static int open_program(int ifindex, enum decap_mode mode, __u32 id, struct decap *ret)
{
	static const struct program_map maps[MAP_COUNT] = {
		[MAP_CONFIG] = {"decap_config", sizeof(__u32), sizeof(struct decap_config)},
		[MAP_LOCALS] = {"decap_locals", sizeof(struct decap_address), sizeof(__u32)},
		[MAP_VIPS] = {"decap_vips", sizeof(struct decap_prefix), sizeof(__u32)},
		[MAP_COUNTERS] = {"decap_counters", sizeof(__u32), sizeof(struct decap_count)},
	};
	struct decap decap = {.ifindex = ifindex, .mode = mode, .program_id = id};
	const __u32 zero = 0;
	struct program program;
	int error = program_open(id, program_name(mode), maps, MAP_COUNT, &program);

	if (error != 0)
		return error;
	decap.program_fd = program.fd;
	decap.config_fd = program.map_fds[MAP_CONFIG];
	decap.locals_fd = program.map_fds[MAP_LOCALS];
	decap.vips_fd = program.map_fds[MAP_VIPS];
	decap.counters_fd = program.map_fds[MAP_COUNTERS];
	memcpy(decap.tag, program.tag, sizeof(decap.tag));
	if (bpf_map_lookup_elem(decap.config_fd, &zero, &decap.config) != 0 ||
		decap.config.magic != DECAP_MAGIC) {
		decap_close(&decap);
		return -ENOENT;
	}
	*ret = decap;
	return 0;
}

void decap_close(struct decap *decap)
{
	const int fds[] = {decap->program_fd, decap->config_fd, decap->locals_fd, decap->vips_fd,
		decap->counters_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int find_tc(int ifindex, struct decap *ret)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, query, .handle = TC_HANDLE, .priority = TC_PRIORITY);

	// Without clsact or a filter the kernel says EINVAL or ENOENT: no difference to us.
	if (bpf_tc_query(&hook, &query) != 0)
		return -ENOENT;
	return open_program(ifindex, DECAP_MODE_TC, query.prog_id, ret);
}

int decap_find(int ifindex, struct decap *ret)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	int error = bpf_xdp_query(ifindex, 0, &query);

	if (error != 0)
		return error;
	if (query.drv_prog_id != 0) {
		error = open_program(ifindex, DECAP_MODE_NATIVE, query.drv_prog_id, ret);
		if (error != -ENOENT)
			return error;
	}
	if (query.skb_prog_id != 0) {
		error = open_program(ifindex, DECAP_MODE_GENERIC, query.skb_prog_id, ret);
		if (error != -ENOENT)
			return error;
	}
	return find_tc(ifindex, ret);
}

// Writes settings into a program's maps, addresses before the switches that make use of them.
static int fill_maps(const struct decap *decap, const struct decap_settings *settings)
{
	struct decap_config config = {
		.magic = DECAP_MAGIC,
		.version = DECAP_VERSION,
		.flags = settings->flags | (decap->config.flags & DECAP_FLAG_CLSACT),
		.gue_port = htobe16(settings->gue_port),
	};
	const __u32 zero = 0;
	int error;

	error = program_sync_map(decap->vips_fd, settings->vips, NULL, settings->vip_count);
	if (error == 0)
		error = program_sync_map(
			decap->locals_fd, settings->locals, NULL, settings->local_count);
	if (error == 0 && bpf_map_update_elem(decap->config_fd, &zero, &config, BPF_ANY) != 0)
		error = -errno;
	return error;
}

// Loads the program that the mode needs. The descriptors in *ret_decap belong to the skeleton.
static int load(enum decap_mode mode, struct decap_bpf **ret_skeleton, struct decap *ret_decap,
	struct decap_error *ret_error)
{
	struct decap_bpf *skeleton = decap_bpf__open();
	struct bpf_prog_info info = {};
	__u32 bytes = sizeof(info);
	struct bpf_program *program;
	int error;

	if (skeleton == NULL)
		return decap_fail(ret_error, DECAP_EXIT_FAILED, errno,
			"cannot open the BPF object: %s", strerror(errno));
	bpf_program__set_autoload(skeleton->progs.ringway_decap, mode != DECAP_MODE_TC);
	bpf_program__set_autoload(skeleton->progs.ringway_tcdecap, mode == DECAP_MODE_TC);
	program = mode == DECAP_MODE_TC ? skeleton->progs.ringway_tcdecap
					: skeleton->progs.ringway_decap;
	error = decap_bpf__load(skeleton);
	if (error == 0 && bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes) != 0)
		error = -errno;
	if (error != 0) {
		decap_bpf__destroy(skeleton);
		return decap_fail(ret_error,
			error == -EPERM ? DECAP_EXIT_PERMISSION : DECAP_EXIT_FAILED, -error,
			"the kernel refuses the program: %s%s", strerror(-error),
			error == -EPERM ? " (it needs root, or CAP_BPF and CAP_NET_ADMIN)"
					: " (again with --verbose shows its reasons)");
	}
	*ret_decap = (struct decap){
		.mode = mode,
		.program_id = info.id,
		.program_fd = bpf_program__fd(program),
		.config_fd = bpf_map__fd(skeleton->maps.decap_config),
		.locals_fd = bpf_map__fd(skeleton->maps.decap_locals),
		.vips_fd = bpf_map__fd(skeleton->maps.decap_vips),
		.counters_fd = bpf_map__fd(skeleton->maps.decap_counters),
	};
	memcpy(ret_decap->tag, info.tag, sizeof(info.tag));
	*ret_skeleton = skeleton;
	return 0;
}

static int attach_tc(int ifindex, struct decap *loaded, const struct decap *present,
	struct decap_error *ret_error)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY,
		.prog_fd = loaded->program_fd, .flags = present ? BPF_TC_F_REPLACE : 0);
	const __u32 zero = 0;
	int error = bpf_tc_hook_create(&hook);

	if (error == 0)
		loaded->config.flags |= DECAP_FLAG_CLSACT;
	else if (error != -EEXIST)
		return decap_fail(ret_error, DECAP_EXIT_FAILED, -error,
			"cannot add the clsact qdisc: %s", strerror(-error));
	if (bpf_map_update_elem(loaded->config_fd, &zero, &loaded->config, BPF_ANY) != 0)
		error = -errno;
	else
		error = bpf_tc_attach(&hook, &options);
	if (error == 0)
		return 0;
	if (loaded->config.flags & DECAP_FLAG_CLSACT && present == NULL)
		tc_hook_remove_if_empty(ifindex);
	if (error == -EEXIST)
		return decap_fail(ret_error, DECAP_EXIT_CONFLICT, EEXIST,
			"a tc filter with priority %d and handle %d is there and is not ours: "
			"see 'tc filter show dev IF ingress'",
			TC_PRIORITY, TC_HANDLE);
	return decap_fail(ret_error, DECAP_EXIT_FAILED, -error, "cannot add the tc filter: %s",
		strerror(-error));
}

static int attach_xdp(int ifindex, struct decap *loaded, const struct decap *present,
	struct decap_error *ret_error)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options, .old_prog_fd = present ? present->program_fd : 0);
	__u32 how = present ? XDP_FLAGS_REPLACE : XDP_FLAGS_UPDATE_IF_NOEXIST;
	int error = bpf_xdp_attach(ifindex, loaded->program_fd, xdp_flags(loaded->mode) | how,
		present ? &options : NULL);

	if (error == 0)
		return 0;
	if (error == -EBUSY || error == -EEXIST)
		return decap_fail(ret_error, DECAP_EXIT_CONFLICT, -error,
			"another XDP program is on the interface: take it off, or use --mode tc");
	return decap_fail(ret_error, DECAP_EXIT_FAILED, -error,
		"cannot attach in %s mode: %s (--mode generic and --mode tc work on every device)",
		decap_mode_name(loaded->mode), strerror(-error));
}

static int attach_loaded(int ifindex, enum decap_mode wanted, struct decap *loaded,
	const struct decap *present, struct decap_error *ret_error)
{
	int error;

	if (loaded->mode == DECAP_MODE_TC)
		return attach_tc(ifindex, loaded, present, ret_error);
	error = attach_xdp(ifindex, loaded, present, ret_error);
	if (error == 0 || wanted != DECAP_MODE_AUTO || present != NULL ||
		ret_error->exit == DECAP_EXIT_CONFLICT)
		return error;
	// The driver has no XDP, or not at this MTU.
	loaded->mode = DECAP_MODE_GENERIC;
	return attach_xdp(ifindex, loaded, NULL, ret_error);
}

static int bring_up(int ifindex, const struct decap_settings *settings, const struct decap *present,
	enum decap_change *ret_change, struct decap_error *ret_error)
{
	enum decap_mode mode = present ? present->mode : settings->mode;
	struct decap_bpf *skeleton = NULL;
	struct decap loaded;
	int error;

	if (mode == DECAP_MODE_AUTO)
		mode = DECAP_MODE_NATIVE;
	error = load(mode, &skeleton, &loaded, ret_error);
	if (error != 0)
		return error;
	if (present != NULL && memcmp(present->tag, loaded.tag, sizeof(loaded.tag)) == 0) {
		*ret_change = DECAP_UPDATED;
		error = fill_maps(present, settings);
	} else {
		*ret_change = present ? DECAP_REPLACED : DECAP_ATTACHED;
		loaded.config.flags = present ? present->config.flags & DECAP_FLAG_CLSACT : 0;
		error = fill_maps(&loaded, settings);
	}
	if (error != 0)
		decap_fail(ret_error, DECAP_EXIT_FAILED, -error, "cannot fill the maps: %s",
			strerror(-error));
	else if (*ret_change != DECAP_UPDATED) {
		const __u32 zero = 0;

		bpf_map_lookup_elem(loaded.config_fd, &zero, &loaded.config);
		error = attach_loaded(ifindex, settings->mode, &loaded, present, ret_error);
	}
	decap_bpf__destroy(skeleton);
	return error;
}

int decap_attach(int ifindex, const struct decap_settings *settings, enum decap_change *ret_change,
	struct decap_error *ret_error)
{
	enum decap_change change;
	struct decap present;
	int error = decap_find(ifindex, &present);

	if (error != 0 && error != -ENOENT)
		return decap_fail(ret_error,
			error == -EPERM ? DECAP_EXIT_PERMISSION : DECAP_EXIT_FAILED, -error,
			"cannot look at the interface: %s", strerror(-error));
	if (error == -ENOENT) {
		error = bring_up(ifindex, settings, NULL, &change, ret_error);
	} else {
		if (settings->mode != DECAP_MODE_AUTO && settings->mode != present.mode)
			error = decap_fail(ret_error, DECAP_EXIT_CONFLICT, EBUSY,
				"attached in %s mode already: detach first to change it to %s",
				decap_mode_name(present.mode), decap_mode_name(settings->mode));
		else
			error = bring_up(ifindex, settings, &present, &change, ret_error);
		decap_close(&present);
	}
	if (error == 0)
		*ret_change = change;
	return error;
}

static int detach_tc(const struct decap *decap)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = decap->ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = TC_HANDLE, .priority = TC_PRIORITY);
	int error = bpf_tc_detach(&hook, &options);

	if (error == 0 && decap->config.flags & DECAP_FLAG_CLSACT)
		error = tc_hook_remove_if_empty(decap->ifindex);
	return error;
}

int decap_detach(int ifindex, struct decap_error *ret_error)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, options);
	struct decap decap;
	int error = decap_find(ifindex, &decap);

	if (error == -ENOENT)
		return decap_fail(
			ret_error, DECAP_EXIT_NOT_FOUND, ENOENT, "nothing of ours is attached");
	if (error != 0)
		return decap_fail(ret_error,
			error == -EPERM ? DECAP_EXIT_PERMISSION : DECAP_EXIT_FAILED, -error,
			"cannot look at the interface: %s", strerror(-error));
	if (decap.mode == DECAP_MODE_TC) {
		error = detach_tc(&decap);
	} else {
		// The kernel compares: a program that took our place since is not touched.
		options.old_prog_fd = decap.program_fd;
		error = bpf_xdp_detach(
			ifindex, xdp_flags(decap.mode) | XDP_FLAGS_REPLACE, &options);
	}
	decap_close(&decap);
	if (error != 0)
		return decap_fail(ret_error, DECAP_EXIT_FAILED, -error, "cannot detach: %s",
			strerror(-error));
	return 0;
}

int decap_read_counters(const struct decap *decap, struct decap_count ret[DECAP_COUNTER_COUNT])
{
	return program_read_counters(decap->counters_fd, DECAP_COUNTER_COUNT, ret);
}
