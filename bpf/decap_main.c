// SPDX-License-Identifier: Apache-2.0
// ringway-decap: puts the decapsulation program on a backend's interface and takes it off again.
#include "bpf/decap.h"
#include "bpf/decap_status.h"

#include <arpa/inet.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"usage: ringway-decap attach IF --vip ADDRESS[/BITS]... [options]\n"
	"       ringway-decap detach IF\n"
	"       ringway-decap status [IF] [--json]\n"
	"\n"
	"Removes IPIP, GUE and GRE headers from packets that arrive on IF for an address of this host\n"
	"when the packet inside is for one of the given virtual addresses. All else passes untouched.\n"
	"\n"
	"options of attach (again on the same IF changes them, without a gap):\n"
	"  --vip ADDRESS[/BITS]  a virtual address, or a prefix of them; must be local (ip addr add .. dev lo)\n"
	"  --local ADDRESS       where tunnels end; default: every address of this host that is no VIP\n"
	"  --mode MODE           auto (native, else generic), native, generic or tc; default auto\n"
	"  --tunnel LIST         of ipip, gue, gre; default all\n"
	"  --gue-port PORT       UDP port of GUE, default 6080\n"
	"  --no-guard            do not ask the routing table whether the virtual address is on this host\n"
	"  --verbose             show what libbpf and the kernel say\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 9 permission\n";

struct arguments {
	const char *verb;
	const char *interface;
	bool json;
	struct decap_settings settings;
};

static bool verbose;

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return verbose && level <= LIBBPF_INFO ? vfprintf(stderr, format, arguments) : 0;
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "ringway-decap: %s%s%s (--help shows what there is)\n", what,
		value ? ": " : "", value ? value : "");
	return -EINVAL;
}

static int parse_number(const char *text, unsigned long max, unsigned long *ret)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *text < '0' || *text > '9' || value > max)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int parse_address(const char *text, struct decap_address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, text, ret->bytes) == 1)
		ret->family = DECAP_V4;
	else if (inet_pton(AF_INET6, text, ret->bytes) == 1)
		ret->family = DECAP_V6;
	else
		return -EINVAL;
	return 0;
}

// Tells whether all bits of an address behind the first `bits` are zero.
static bool host_bits_are_zero(const __u8 bytes[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		if (bytes[i / 8] & 0x80u >> i % 8)
			return false;
	return true;
}

static int add_vip(struct decap_settings *settings, const char *text)
{
	struct decap_prefix *vip = &settings->vips[settings->vip_count];
	char address_text[INET6_ADDRSTRLEN + 4];
	struct decap_address address;
	unsigned long bits, bits_max;
	char *slash;

	if (settings->vip_count == DECAP_VIPS_MAX)
		return usage_error("more than 4096 virtual addresses at", text);
	if (strlen(text) >= sizeof(address_text))
		return usage_error("no address", text);
	strcpy(address_text, text);
	slash = strchr(address_text, '/');
	if (slash != NULL)
		*slash++ = '\0';
	if (parse_address(address_text, &address) != 0)
		return usage_error("no address", text);
	bits_max = address.family == DECAP_V4 ? 32 : 128;
	bits = bits_max;
	if (slash != NULL && (parse_number(slash, bits_max, &bits) != 0 || bits == 0))
		return usage_error("no prefix length", text);
	if (!host_bits_are_zero(address.bytes, (unsigned)bits))
		return usage_error("bits set behind the prefix", text);
	*vip = (struct decap_prefix){
		.bits = DECAP_PREFIX_BASE_BITS + (__u32)bits, .family = address.family};
	memcpy(vip->bytes, address.bytes, sizeof(vip->bytes));
	settings->vip_count++;
	return 0;
}

static int add_local(struct decap_settings *settings, const char *text)
{
	if (settings->local_count == DECAP_LOCALS_MAX)
		return usage_error("more than 1024 local addresses at", text);
	if (parse_address(text, &settings->locals[settings->local_count]) != 0)
		return usage_error("no address", text);
	settings->local_count++;
	return 0;
}

static int set_mode(struct decap_settings *settings, const char *text)
{
	for (enum decap_mode mode = 0; mode < DECAP_MODE_COUNT; mode++) {
		if (strcmp(text, decap_mode_name(mode)) == 0) {
			settings->mode = mode;
			return 0;
		}
	}
	return usage_error("no mode", text);
}

static int set_tunnels(struct decap_settings *settings, const char *text)
{
	static char *const names[] = {
		[DECAP_IPIP] = "ipip", [DECAP_GUE] = "gue", [DECAP_GRE] = "gre", NULL};
	char list[64], *rest = list, *value;

	if (strlen(text) >= sizeof(list))
		return usage_error("no list of tunnels", text);
	strcpy(list, text);
	settings->flags &= ~(DECAP_FLAG_IPIP | DECAP_FLAG_GUE | DECAP_FLAG_GRE);
	while (*rest != '\0') {
		int tunnel = getsubopt(&rest, names, &value);

		if (tunnel < 0 || value != NULL)
			return usage_error("no list of tunnels", text);
		settings->flags |= 1u << tunnel;
	}
	return 0;
}

static int set_port(struct decap_settings *settings, const char *text)
{
	unsigned long port;

	if (parse_number(text, 65535, &port) != 0 || port == 0)
		return usage_error("no port", text);
	settings->gue_port = (__u16)port;
	return 0;
}

static const struct option options[] = {
	{"vip", required_argument, NULL, 'v'},
	{"local", required_argument, NULL, 'l'},
	{"mode", required_argument, NULL, 'm'},
	{"tunnel", required_argument, NULL, 't'},
	{"gue-port", required_argument, NULL, 'g'},
	{"no-guard", no_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'j'},
	{"verbose", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int take_option(struct arguments *arguments, int option, const char *value)
{
	switch (option) {
	case 'v':
		return add_vip(&arguments->settings, value);
	case 'l':
		return add_local(&arguments->settings, value);
	case 'm':
		return set_mode(&arguments->settings, value);
	case 't':
		return set_tunnels(&arguments->settings, value);
	case 'g':
		return set_port(&arguments->settings, value);
	case 'n':
		arguments->settings.flags &= ~DECAP_FLAG_GUARD;
		return 0;
	case 'j':
		arguments->json = true;
		return 0;
	case 'V':
		verbose = true;
		return 0;
	case 'h':
		fputs(usage_text, stdout);
		exit(DECAP_EXIT_OK);
	default:
		return -EINVAL; // getopt has said why
	}
}

static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
	int option;

	arguments->settings.gue_port = DECAP_GUE_PORT;
	arguments->settings.flags =
		DECAP_FLAG_IPIP | DECAP_FLAG_GUE | DECAP_FLAG_GRE | DECAP_FLAG_GUARD;
	while ((option = getopt_long(argc, argv, "jh", options, NULL)) != -1)
		if (take_option(arguments, option, optarg) != 0)
			return -EINVAL;
	if (optind == argc)
		return usage_error("attach, detach or status?", NULL);
	arguments->verb = argv[optind++];
	if (optind < argc)
		arguments->interface = argv[optind++];
	if (optind < argc)
		return usage_error("too many words", argv[optind]);
	return 0;
}

static void address_of(const struct sockaddr *socket_address, struct decap_address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (socket_address->sa_family == AF_INET) {
		ret->family = DECAP_V4;
		memcpy(ret->bytes, &((const struct sockaddr_in *)socket_address)->sin_addr, 4);
	} else {
		ret->family = DECAP_V6;
		memcpy(ret->bytes, &((const struct sockaddr_in6 *)socket_address)->sin6_addr, 16);
	}
}

static bool prefix_covers(const struct decap_prefix *prefix, const struct decap_address *address)
{
	unsigned bits = prefix->bits - DECAP_PREFIX_BASE_BITS;

	if (prefix->family != address->family)
		return false;
	for (unsigned i = 0; i < bits; i++)
		if ((prefix->bytes[i / 8] ^ address->bytes[i / 8]) & 0x80u >> i % 8)
			return false;
	return true;
}

// Takes every address of this host that is neither a virtual one nor on the loopback device as a tunnel's end, and
// warns of single virtual addresses that the host does not have: their packets pass with their tunnel header on.
static int collect_locals(struct decap_settings *settings)
{
	bool wanted = settings->local_count == 0;
	bool *seen = calloc(settings->vip_count, sizeof(*seen));
	struct ifaddrs *list, *entry;

	if (seen == NULL || getifaddrs(&list) != 0) {
		free(seen);
		return -errno;
	}
	for (entry = list; entry != NULL; entry = entry->ifa_next) {
		struct decap_address address;
		bool is_vip = false;

		if (entry->ifa_addr == NULL ||
			(entry->ifa_addr->sa_family != AF_INET &&
				entry->ifa_addr->sa_family != AF_INET6))
			continue;
		address_of(entry->ifa_addr, &address);
		for (size_t i = 0; i < settings->vip_count; i++) {
			if (prefix_covers(&settings->vips[i], &address))
				is_vip = seen[i] = true;
		}
		if (wanted && !is_vip && !(entry->ifa_flags & IFF_LOOPBACK) &&
			settings->local_count < DECAP_LOCALS_MAX)
			settings->locals[settings->local_count++] = address;
	}
	freeifaddrs(list);
	for (size_t i = 0; i < settings->vip_count; i++) {
		char text[DECAP_PREFIX_TEXT_BYTES];

		if (!seen[i])
			fprintf(stderr,
				"ringway-decap: warning: %s is not an address of this host yet "
				"(ip addr add %s dev lo)\n",
				decap_format_prefix(&settings->vips[i], text), text);
	}
	free(seen);
	return 0;
}

static int run_attach(struct arguments *arguments, int ifindex)
{
	static const char *const changes[] = {
		[DECAP_ATTACHED] = "attached",
		[DECAP_UPDATED] = "updated",
		[DECAP_REPLACED] = "replaced by this build",
	};
	struct decap_settings *settings = &arguments->settings;
	struct decap_error error = {};
	enum decap_change change;
	struct decap decap;

	if (settings->vip_count == 0) {
		usage_error("attach needs at least one --vip", NULL);
		return DECAP_EXIT_USAGE;
	}
	if (collect_locals(settings) != 0) {
		fprintf(stderr, "ringway-decap: cannot read this host's addresses: %s\n",
			strerror(errno));
		return DECAP_EXIT_FAILED;
	}
	if (settings->local_count == 0) {
		fprintf(stderr,
			"ringway-decap: this host has no address where a tunnel could end: "
			"add one, or give --local\n");
		return DECAP_EXIT_FAILED;
	}
	if (decap_attach(ifindex, settings, &change, &error) != 0) {
		fprintf(stderr, "ringway-decap: %s: %s\n", arguments->interface, error.text);
		return error.exit;
	}
	if (decap_find(ifindex, &decap) != 0) {
		fprintf(stderr, "ringway-decap: %s: attached, and gone again at once\n",
			arguments->interface);
		return DECAP_EXIT_FAILED;
	}
	printf("%s: %s, %s mode, program %u, %zu virtual and %zu local addresses\n",
		arguments->interface, changes[change], decap_mode_name(decap.mode),
		decap.program_id, settings->vip_count, settings->local_count);
	decap_close(&decap);
	return DECAP_EXIT_OK;
}

static int run_detach(const struct arguments *arguments, int ifindex)
{
	struct decap_error error = {};
	int result = decap_detach(ifindex, &error);

	// Twice is the same as once.
	if (result == -ENOENT) {
		printf("%s: %s\n", arguments->interface, error.text);
		return DECAP_EXIT_OK;
	}
	if (result != 0) {
		fprintf(stderr, "ringway-decap: %s: %s\n", arguments->interface, error.text);
		return error.exit;
	}
	printf("%s: detached\n", arguments->interface);
	return DECAP_EXIT_OK;
}

static int dispatch(struct arguments *arguments)
{
	bool status = strcmp(arguments->verb, "status") == 0;
	bool attach = strcmp(arguments->verb, "attach") == 0;
	int ifindex = 0;

	if (!status && !attach && strcmp(arguments->verb, "detach") != 0) {
		usage_error("no verb", arguments->verb);
		return DECAP_EXIT_USAGE;
	}
	if (arguments->interface == NULL && !status) {
		usage_error("an interface is missing", NULL);
		return DECAP_EXIT_USAGE;
	}
	if (arguments->interface != NULL) {
		ifindex = (int)if_nametoindex(arguments->interface);
		if (ifindex == 0) {
			fprintf(stderr,
				"ringway-decap: %s: no such interface ('ip link' lists them)\n",
				arguments->interface);
			return DECAP_EXIT_NOT_FOUND;
		}
	}
	if (status)
		return decap_status(ifindex, arguments->json);
	return attach ? run_attach(arguments, ifindex) : run_detach(arguments, ifindex);
}

int main(int argc, char **argv)
{
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	int exit_code = DECAP_EXIT_USAGE;

	if (arguments == NULL)
		return DECAP_EXIT_FAILED;
	libbpf_set_print(print_libbpf);
	if (parse_arguments(argc, argv, arguments) == 0)
		exit_code = dispatch(arguments);
	free(arguments);
	return exit_code;
}
