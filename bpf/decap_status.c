// SPDX-License-Identifier: Apache-2.0
#include "bpf/decap_status.h"

#include "bpf/program.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *text;
} counters[] = {
#define COUNTER(name, text) {#name, text},
	DECAP_COUNTERS(COUNTER)
#undef COUNTER
};

static const char *const tunnels[] = {
	[DECAP_IPIP] = "ipip", [DECAP_GUE] = "gue", [DECAP_GRE] = "gre"};

const char *decap_format_prefix(
	const struct decap_prefix *prefix, char ret[DECAP_PREFIX_TEXT_BYTES])
{
	unsigned bits = prefix->bits - DECAP_PREFIX_BASE_BITS;
	size_t length;

	inet_ntop(prefix->family == DECAP_V4 ? AF_INET : AF_INET6, prefix->bytes, ret,
		DECAP_PREFIX_TEXT_BYTES);
	length = strlen(ret);
	if (bits != (prefix->family == DECAP_V4 ? 32u : 128u))
		snprintf(ret + length, DECAP_PREFIX_TEXT_BYTES - length, "/%u", bits);
	return ret;
}

static json_t *describe_vips(const struct decap *decap)
{
	struct decap_prefix *keys = calloc(DECAP_VIPS_MAX, sizeof(*keys));
	json_t *list = json_array();
	size_t count = keys ? program_read_keys(decap->vips_fd, keys, DECAP_VIPS_MAX) : 0;
	char text[DECAP_PREFIX_TEXT_BYTES];

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(decap_format_prefix(&keys[i], text)));
	free(keys);
	return list;
}

static json_t *describe_locals(const struct decap *decap)
{
	struct decap_address *keys = calloc(DECAP_LOCALS_MAX, sizeof(*keys));
	json_t *list = json_array();
	size_t count = keys ? program_read_keys(decap->locals_fd, keys, DECAP_LOCALS_MAX) : 0;
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < count; i++) {
		inet_ntop(keys[i].family == DECAP_V4 ? AF_INET : AF_INET6, keys[i].bytes, text,
			sizeof(text));
		json_array_append_new(list, json_string(text));
	}
	free(keys);
	return list;
}

static json_t *describe_tunnels(const struct decap *decap)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < DECAP_TUNNEL_COUNT; i++)
		if (decap->config.flags & 1u << i)
			json_array_append_new(list, json_string(tunnels[i]));
	return list;
}

static json_t *describe_counters(const struct decap_count counts[DECAP_COUNTER_COUNT])
{
	json_t *object = json_object();

	for (unsigned i = 0; i < DECAP_COUNTER_COUNT; i++)
		json_object_set_new(object, counters[i].name,
			json_pack("{s:I, s:I}", "packets", (json_int_t)counts[i].packets, "bytes",
				(json_int_t)counts[i].bytes));
	return object;
}

static json_t *describe(const char *name, const struct decap *decap)
{
	struct decap_count counts[DECAP_COUNTER_COUNT] = {};
	json_int_t decapsulated = 0;

	if (decap_read_counters(decap, counts) != 0)
		return NULL;
	for (unsigned i = 0; i < DECAP_COUNTER_TUNNELS; i++)
		decapsulated += (json_int_t)counts[i].packets;
	return json_pack("{s:s, s:s, s:i, s:i, s:b, s:o, s:o, s:o, s:I, s:o}", "interface", name,
		"mode", decap_mode_name(decap->mode), "program_id", (int)decap->program_id,
		"gue_port", be16toh(decap->config.gue_port), "guard",
		(decap->config.flags & DECAP_FLAG_GUARD) != 0, "tunnels", describe_tunnels(decap),
		"vips", describe_vips(decap), "locals", describe_locals(decap),
		"decapsulated_packets", decapsulated, "counters", describe_counters(counts));
}

static void print_list(const char *title, const json_t *list)
{
	size_t i;
	json_t *item;

	printf("  %s", title);
	json_array_foreach (list, i, item)
		printf(" %s", json_string_value(item));
	printf("\n");
}

static void print_text(const json_t *program)
{
	const json_t *counts = json_object_get(program, "counters");

	printf("%s: %s mode, program %d, GUE port %d, guard %s\n",
		json_string_value(json_object_get(program, "interface")),
		json_string_value(json_object_get(program, "mode")),
		(int)json_integer_value(json_object_get(program, "program_id")),
		(int)json_integer_value(json_object_get(program, "gue_port")),
		json_is_true(json_object_get(program, "guard")) ? "on" : "off");
	print_list("tunnels:          ", json_object_get(program, "tunnels"));
	print_list("virtual addresses:", json_object_get(program, "vips"));
	print_list("tunnels end at:   ", json_object_get(program, "locals"));
	for (unsigned i = 0; i < DECAP_COUNTER_COUNT; i++) {
		const json_t *count = json_object_get(counts, counters[i].name);
		json_int_t packets = json_integer_value(json_object_get(count, "packets"));

		if (packets != 0)
			printf("  %12" JSON_INTEGER_FORMAT " packets %14" JSON_INTEGER_FORMAT
			       " bytes  %-14s %s\n",
				packets, json_integer_value(json_object_get(count, "bytes")),
				counters[i].name, counters[i].text);
	}
}

// Appends the program on an interface to the list, if there is one. Returns 0, or an error that is not "none of ours".
static int collect(json_t *list, int ifindex, const char *name)
{
	struct decap decap;
	json_t *program;
	int error = decap_find(ifindex, &decap);

	if (error != 0)
		return error == -ENOENT ? 0 : error;
	program = describe(name, &decap);
	decap_close(&decap);
	return program != NULL && json_array_append_new(list, program) == 0 ? 0 : -EIO;
}

static int collect_all(json_t *list)
{
	struct if_nameindex *interfaces = if_nameindex();
	int error = 0;

	if (interfaces == NULL)
		return -errno;
	for (struct if_nameindex *i = interfaces; i->if_index != 0 && error == 0; i++) {
		error = collect(list, (int)i->if_index, i->if_name);
		if (error == -ENODEV)
			error = 0; // gone since we listed them
	}
	if_freenameindex(interfaces);
	return error;
}

int decap_status(int ifindex, bool json)
{
	char name[IF_NAMESIZE] = "";
	json_t *list = json_array(), *item;
	int error;
	size_t i;

	if (ifindex != 0)
		if_indextoname((unsigned)ifindex, name);
	error = ifindex != 0 ? collect(list, ifindex, name) : collect_all(list);
	if (error != 0) {
		fprintf(stderr, "ringway-decap: cannot read the interfaces' programs: %s%s\n",
			strerror(-error), error == -EPERM ? " (it needs root)" : "");
		json_decref(list);
		return error == -EPERM ? DECAP_EXIT_PERMISSION : DECAP_EXIT_FAILED;
	}
	if (json) {
		json_t *object = json_pack("{s:i, s:O}", "schema_version", 1, "interfaces", list);

		json_dumpf(object, stdout, JSON_INDENT(2));
		printf("\n");
		json_decref(object);
	} else {
		json_array_foreach (list, i, item)
			print_text(item);
		if (json_array_size(list) == 0)
			printf("nothing of ours is attached\n");
	}
	error = ifindex != 0 && json_array_size(list) == 0 ? DECAP_EXIT_NOT_FOUND : DECAP_EXIT_OK;
	json_decref(list);
	return error;
}
