// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/options.h"

#include <errno.h>
#include <getopt.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ARGUMENTS_MAX   4096
#define ARGS_FILE_BYTES (1u << 20)
#define MTU_MIN         576u // RFC 791: every host must take this much
#define MTU_MAX         9600u
#define VLAN_MAX        4094u

static const char help[] =
	"Usage: ringway-dataplane --port DEVICE [option of the port]... [option]...\n"
	"       ringway-dataplane --replay IN.pcap OUT.pcap --snapshot FILE [--port none option...]\n"
	"\n"
	"Forwards packets from DPDK ports to backends as the snapshot says that ringwayd loads.\n"
	"\n"
	"  --args FILE          read more arguments from FILE, one a line; # begins a comment line\n"
	"  --run-dir DIR        socket, stats, snapshot and flow tables (default /run/ringway)\n"
	"  --huge-dir DIR       a hugetlbfs directory for the flow tables (default: the run directory)\n"
	"  --main CPU           CPU of the housekeeping thread (default 0)\n"
	"  --workers CPU,...    one worker for each CPU named (default 1)\n"
	"  --flow-entries N     flow table entries of a worker, 8 bytes each (default 1048576)\n"
	"  --services N --pools N --backends N\n"
	"                       ids that have counters (default 1024, 1024, 65536)\n"
	"  --idle-sleep         workers sleep 50 us at a time while no packet comes\n"
	"  --user NAME          give up root for this user once the ports are open\n"
	"  --keep-privileges    keep capabilities and system calls (for debuggers)\n"
	"  --eal ARG            an argument for DPDK's EAL, as often as needed\n"
	"                       (without any: --in-memory)\n"
	"\n"
	"  --port DEVICE        a PCI address or a vdev, with its devargs:\n"
	"                       0000:3b:00.0   net_af_packet0,iface=eth1   net_af_xdp0,iface=eth1\n"
	"   --mtu N             of IP packets on this port, tunnel headers included (default 1500)\n"
	"   --vlan N            the port's link is VLAN N of a trunk (default: untagged)\n"
	"   --address A/LEN     an address of this port, as often as needed\n"
	"   --gateway A         next hop for what is on no link, one of each family\n"
	"   --punt NAME         hand packets for the host to the kernel through the TAP NAME\n"
	"\n"
	"  --replay IN OUT      run the pipeline over a capture: no port, no root, no hugepages\n"
	"  --snapshot FILE      the snapshot image for --replay\n"
	"  --neighbour-mac MAC  every next hop of a --replay answers with MAC\n"
	"  --help, --version\n";

enum option_id {
	OPTION_ARGS = 256,
	OPTION_RUN_DIR,
	OPTION_HUGE_DIR,
	OPTION_USER,
	OPTION_MAIN,
	OPTION_WORKERS,
	OPTION_FLOW_ENTRIES,
	OPTION_SERVICES,
	OPTION_POOLS,
	OPTION_BACKENDS,
	OPTION_IDLE_SLEEP,
	OPTION_KEEP_PRIVILEGES,
	OPTION_EAL,
	OPTION_PORT,
	OPTION_MTU,
	OPTION_VLAN,
	OPTION_ADDRESS,
	OPTION_GATEWAY,
	OPTION_PUNT,
	OPTION_REPLAY,
	OPTION_SNAPSHOT,
	OPTION_NEIGHBOUR_MAC,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"args", required_argument, NULL, OPTION_ARGS},
	{"run-dir", required_argument, NULL, OPTION_RUN_DIR},
	{"huge-dir", required_argument, NULL, OPTION_HUGE_DIR},
	{"user", required_argument, NULL, OPTION_USER},
	{"main", required_argument, NULL, OPTION_MAIN},
	{"workers", required_argument, NULL, OPTION_WORKERS},
	{"flow-entries", required_argument, NULL, OPTION_FLOW_ENTRIES},
	{"services", required_argument, NULL, OPTION_SERVICES},
	{"pools", required_argument, NULL, OPTION_POOLS},
	{"backends", required_argument, NULL, OPTION_BACKENDS},
	{"idle-sleep", no_argument, NULL, OPTION_IDLE_SLEEP},
	{"keep-privileges", no_argument, NULL, OPTION_KEEP_PRIVILEGES},
	{"eal", required_argument, NULL, OPTION_EAL},
	{"port", required_argument, NULL, OPTION_PORT},
	{"mtu", required_argument, NULL, OPTION_MTU},
	{"vlan", required_argument, NULL, OPTION_VLAN},
	{"address", required_argument, NULL, OPTION_ADDRESS},
	{"gateway", required_argument, NULL, OPTION_GATEWAY},
	{"punt", required_argument, NULL, OPTION_PUNT},
	{"replay", required_argument, NULL, OPTION_REPLAY},
	{"snapshot", required_argument, NULL, OPTION_SNAPSHOT},
	{"neighbour-mac", required_argument, NULL, OPTION_NEIGHBOUR_MAC},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

// One parse: the arguments after --args is resolved, where to put them, and where to say what is wrong.
struct parse {
	char *argv[ARGUMENTS_MAX + 1];
	int argc;
	struct options *options;
	char *error;
	const char *flag; // the flag that is being read
};

__attribute__((format(printf, 2, 3))) static int fail(struct parse *parse, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parse->error, OPTIONS_ERROR_SIZE, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int push(struct parse *parse, char *argument)
{
	if (parse->argc == ARGUMENTS_MAX)
		return fail(parse, "more than %d arguments", ARGUMENTS_MAX);
	parse->argv[parse->argc++] = argument;
	parse->argv[parse->argc] = NULL;
	return 0;
}

// Adds the lines of a file. Its text stays: options point into it.
static int push_file(struct parse *parse, const char *path)
{
	struct options *options = parse->options;
	FILE *file = fopen(path, "r");
	char *text, *line, *rest;
	size_t length;

	if (file == NULL)
		return fail(parse, "--args %s: %s", path, strerror(errno));
	text = options->text_count < OPTIONS_FILES_MAX ? calloc(1, ARGS_FILE_BYTES + 1) : NULL;
	length = text != NULL ? fread(text, 1, ARGS_FILE_BYTES + 1, file) : 0;
	fclose(file);
	if (text == NULL)
		return fail(parse, "--args %s: more than %u such files", path, OPTIONS_FILES_MAX);
	options->texts[options->text_count++] = text;
	if (length > ARGS_FILE_BYTES)
		return fail(parse, "--args %s: longer than %u bytes", path, ARGS_FILE_BYTES);
	rest = text;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (strncmp(line, "--args", 6) == 0)
			return fail(parse, "--args %s: names another file of arguments", path);
		if (push(parse, line) != 0)
			return -EINVAL;
	}
	return 0;
}

// Puts the lines of each --args file in its place.
static int expand(struct parse *parse, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		int result;

		if (strncmp(argv[i], "--args=", 7) == 0)
			result = push_file(parse, argv[i] + 7);
		else if (strcmp(argv[i], "--args") == 0 && i + 1 < argc)
			result = push_file(parse, argv[++i]);
		else
			result = push(parse, argv[i]);
		if (result != 0)
			return result;
	}
	return 0;
}

static int read_number(
	struct parse *parse, const char *text, const uint32_t limits[static 2], uint32_t *ret)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < limits[0] ||
		number > limits[1]) {
		return fail(parse, "--%s %s: must be a number from %u to %u", parse->flag, text,
			limits[0], limits[1]);
	}
	*ret = (uint32_t)number;
	return 0;
}

static int read_workers(struct parse *parse, char *text)
{
	static const uint32_t cpus[2] = {0, 1023};
	struct options *options = parse->options;
	char *cpu;

	options->worker_count = 0;
	while ((cpu = strsep(&text, ",")) != NULL) {
		if (options->worker_count == PIPELINE_WORKERS_MAX)
			return fail(parse, "--workers: more than %u workers", PIPELINE_WORKERS_MAX);
		if (read_number(parse, cpu, cpus, &options->worker_cpus[options->worker_count]) !=
			0)
			return -EINVAL;
		options->worker_count++;
	}
	return 0;
}

static struct options_port *current_port(struct parse *parse)
{
	struct options *options = parse->options;

	if (options->port_count == 0) {
		fail(parse, "--%s: belongs to a port, so it must follow a --port", parse->flag);
		return NULL;
	}
	return &options->ports[options->port_count - 1];
}

static int read_port(struct parse *parse, const char *device)
{
	struct options *options = parse->options;
	struct options_port *port;

	if (options->port_count == PIPELINE_PORTS_MAX)
		return fail(parse, "--port %s: more than %u ports", device, PIPELINE_PORTS_MAX);
	if (device[0] == '\0')
		return fail(parse, "--port: the device is empty");
	port = &options->ports[options->port_count++];
	port->device = device;
	port->mtu = 1500;
	return 0;
}

static int read_address(struct parse *parse, const char *text)
{
	struct options_port *port = current_port(parse);
	char address[ADDR_TEXT_BYTES];
	const char *slash = strchr(text, '/');
	struct pipeline_address *ret;
	uint32_t limits[2] = {1, 0}, bits = 0;

	if (port == NULL)
		return -EINVAL;
	if (port->address_count == PIPELINE_ADDRESSES_MAX)
		return fail(parse, "--address %s: more than %u addresses on %s", text,
			PIPELINE_ADDRESSES_MAX, port->device);
	if (slash == NULL || (size_t)(slash - text) >= sizeof(address))
		return fail(parse, "--address %s: must be ADDRESS/PREFIX-LENGTH", text);
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	ret = &port->addresses[port->address_count];
	if (addr_parse(address, &ret->address) != 0)
		return fail(parse, "--address %s: no IPv4 or IPv6 address", text);
	limits[1] = ret->address.family == ADDR_V4 ? 32 : 128;
	if (read_number(parse, slash + 1, limits, &bits) != 0)
		return fail(parse, "--address %s: prefix length must be 1 to %u", text, limits[1]);
	ret->prefix_bits = (uint8_t)bits;
	port->address_count++;
	return 0;
}

static int read_gateway(struct parse *parse, const char *text)
{
	struct options_port *port = current_port(parse);
	struct ip_addr address, *ret;

	if (port == NULL)
		return -EINVAL;
	if (addr_parse(text, &address) != 0)
		return fail(parse, "--gateway %s: no IPv4 or IPv6 address", text);
	ret = address.family == ADDR_V4 ? &port->gateway4 : &port->gateway6;
	if (ret->family != ADDR_NONE)
		return fail(parse, "--gateway %s: %s has one of this family already", text,
			port->device);
	*ret = address;
	return 0;
}

static int read_mtu(struct parse *parse, const char *text)
{
	static const uint32_t limits[2] = {MTU_MIN, MTU_MAX};
	struct options_port *port = current_port(parse);
	uint32_t mtu = 0;

	if (port == NULL || read_number(parse, text, limits, &mtu) != 0)
		return -EINVAL;
	port->mtu = (uint16_t)mtu;
	return 0;
}

static int read_vlan(struct parse *parse, const char *text)
{
	static const uint32_t limits[2] = {1, VLAN_MAX};
	struct options_port *port = current_port(parse);
	uint32_t vlan = 0;

	if (port == NULL || read_number(parse, text, limits, &vlan) != 0)
		return -EINVAL;
	port->vlan = (uint16_t)vlan;
	return 0;
}

static int read_punt(struct parse *parse, const char *name)
{
	struct options_port *port = current_port(parse);

	if (port == NULL)
		return -EINVAL;
	if (name[0] == '\0' || strlen(name) >= IFNAMSIZ || strpbrk(name, "/, ") != NULL)
		return fail(parse, "--punt %s: no name for a network interface", name);
	port->punt = name;
	return 0;
}

static int read_mac(struct parse *parse, const char *text)
{
	uint8_t *mac = parse->options->replay.neighbour_mac;
	int end = 0;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
		    &mac[3], &mac[4], &mac[5], &end) != 6 ||
		text[end] != '\0')
		return fail(
			parse, "--neighbour-mac %s: must be six bytes, 02:00:00:00:00:01", text);
	return 0;
}

// --replay takes two arguments, which getopt does not know of.
static int read_replay(struct parse *parse, const char *input)
{
	if (optind >= parse->argc || parse->argv[optind][0] == '-')
		return fail(parse, "--replay %s: needs the name of the output behind it", input);
	parse->options->replay.input = input;
	parse->options->replay.output = parse->argv[optind++];
	return 0;
}

static int read_eal(struct parse *parse, const char *argument)
{
	struct options *options = parse->options;

	if (options->eal_count == OPTIONS_EAL_MAX)
		return fail(
			parse, "--eal %s: more than %u EAL arguments", argument, OPTIONS_EAL_MAX);
	options->eal[options->eal_count++] = argument;
	return 0;
}

// Options whose value is a number of the process.
static int read_count(struct parse *parse, int id, const char *text)
{
	struct options *options = parse->options;
	const struct {
		int id;
		uint32_t limits[2];
		uint32_t *ret;
	} counts[] = {
		{OPTION_MAIN, {0, 1023}, &options->main_cpu},
		{OPTION_FLOW_ENTRIES, {64, UINT32_C(1) << 31}, &options->flow_entries},
		{OPTION_SERVICES, {1, SNAPSHOT_SERVICES_MAX}, &options->capacity.service_count},
		{OPTION_POOLS, {1, SNAPSHOT_POOLS_MAX}, &options->capacity.pool_count},
		{OPTION_BACKENDS, {1, SNAPSHOT_BACKENDS_MAX}, &options->capacity.backend_count},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (counts[i].id == id)
			return read_number(parse, text, counts[i].limits, counts[i].ret);
	}
	return fail(parse, "--%s: not known here", parse->flag);
}

static int read_option(struct parse *parse, int id, char *value)
{
	struct options *options = parse->options;

	switch (id) {
	case OPTION_RUN_DIR:
		options->run_dir = value;
		return 0;
	case OPTION_HUGE_DIR:
		options->huge_dir = value;
		return 0;
	case OPTION_USER:
		options->user = value;
		return 0;
	case OPTION_SNAPSHOT:
		options->replay.snapshot = value;
		return 0;
	case OPTION_IDLE_SLEEP:
		options->idle_sleep = true;
		return 0;
	case OPTION_KEEP_PRIVILEGES:
		options->keep_privileges = true;
		return 0;
	case OPTION_WORKERS:
		return read_workers(parse, value);
	case OPTION_EAL:
		return read_eal(parse, value);
	case OPTION_PORT:
		return read_port(parse, value);
	case OPTION_MTU:
		return read_mtu(parse, value);
	case OPTION_VLAN:
		return read_vlan(parse, value);
	case OPTION_ADDRESS:
		return read_address(parse, value);
	case OPTION_GATEWAY:
		return read_gateway(parse, value);
	case OPTION_PUNT:
		return read_punt(parse, value);
	case OPTION_REPLAY:
		return read_replay(parse, value);
	case OPTION_NEIGHBOUR_MAC:
		return read_mac(parse, value);
	default:
		return read_count(parse, id, value);
	}
}

// What must be there, once all is read.
static int check_whole(struct parse *parse)
{
	const struct options *options = parse->options;

	if (optind < parse->argc)
		return fail(parse, "\"%s\": no flag before it", parse->argv[optind]);
	if (options->replay.input != NULL && options->replay.snapshot == NULL)
		return fail(parse, "--replay: needs --snapshot FILE");
	if (options->replay.input == NULL && options->replay.snapshot != NULL)
		return fail(parse, "--snapshot %s: only for --replay; ringwayd loads the live one",
			options->replay.snapshot);
	if (options->replay.input == NULL && options->port_count == 0)
		return fail(parse, "--port: at least one is needed");
	return 0;
}

static enum options_outcome read_all(struct parse *parse)
{
	int id, index = 0;

	opterr = 0;
	optind = 0;
	while ((id = getopt_long(parse->argc, parse->argv, "+:", long_options, &index)) != -1) {
		if (id == OPTION_HELP)
			return OPTIONS_HELP;
		if (id == OPTION_VERSION)
			return OPTIONS_VERSION;
		if (id == ':') {
			fail(parse, "%s: needs a value", parse->argv[optind - 1]);
			return OPTIONS_BAD;
		}
		if (id == '?') {
			fail(parse, "%s: unknown, ambiguous or given a value it does not take",
				parse->argv[optind - 1]);
			return OPTIONS_BAD;
		}
		parse->flag = long_options[index].name;
		if (read_option(parse, id, optarg) != 0)
			return OPTIONS_BAD;
	}
	return check_whole(parse) == 0 ? OPTIONS_RUN : OPTIONS_BAD;
}

enum options_outcome options_parse(
	int argc, char **argv, struct options *ret, char ret_error[static OPTIONS_ERROR_SIZE])
{
	struct parse *parse = calloc(1, sizeof(*parse));
	enum options_outcome outcome = OPTIONS_BAD;

	ret_error[0] = '\0';
	if (parse == NULL)
		return OPTIONS_BAD;
	memset(ret, 0, sizeof(*ret));
	ret->run_dir = "/run/ringway";
	ret->worker_cpus[0] = 1;
	ret->worker_count = 1;
	ret->flow_entries = 1u << 20;
	ret->capacity.service_count = 1024;
	ret->capacity.pool_count = 1024;
	ret->capacity.backend_count = 65536;
	parse->options = ret;
	parse->error = ret_error;
	if (expand(parse, argc, argv) == 0)
		outcome = read_all(parse);
	ret->capacity.worker_count = ret->worker_count;
	free(parse);
	return outcome;
}

void options_free(struct options *options)
{
	while (options->text_count > 0)
		free(options->texts[--options->text_count]);
}

const char *options_help(void)
{
	return help;
}
