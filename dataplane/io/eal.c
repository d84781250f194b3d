// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/eal.h"

#include "dataplane/io/flow_file.h"
#include "dataplane/io/hugemem.h"
#include "dataplane/io/port.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <stdio.h>

#define ARGUMENTS_MAX  (OPTIONS_EAL_MAX + 4 * PIPELINE_PORTS_MAX + 32)
#define ARGUMENT_BYTES 16384u
#define TEXT_BYTES     (PIPELINE_WORKERS_MAX * 16)
#define MIB            (UINT64_C(1) << 20)

// What EAL itself takes beside the buffers: queues of ports, rings, its own tables.
#define EAL_OWN_BYTES (32 * MIB)

// The arguments of rte_eal_init(). EAL keeps pointers to some of them, and moves others, so the text stays in one
// place for the life of the process.
struct arguments {
	char *argv[ARGUMENTS_MAX + 1];
	int argc;
	char text[ARGUMENT_BYTES];
	size_t used;
	bool failed;
};

static void add(struct arguments *arguments, const char *text)
{
	size_t bytes = strlen(text) + 1;

	if (arguments->argc == (int)ARGUMENTS_MAX || bytes > ARGUMENT_BYTES - arguments->used) {
		arguments->failed = true;
		return;
	}
	arguments->argv[arguments->argc++] = memcpy(arguments->text + arguments->used, text, bytes);
	arguments->argv[arguments->argc] = NULL;
	arguments->used += bytes;
}

static void add_pair(struct arguments *arguments, const char *flag, const char *value)
{
	add(arguments, flag);
	add(arguments, value);
}

bool eal_has(const struct options *options, const char *argument)
{
	size_t length = strlen(argument);

	for (uint32_t i = 0; i < options->eal_count; i++) {
		const char *given = options->eal[i];

		if (strncmp(given, argument, length) == 0 &&
			(given[length] == '\0' || given[length] == '=' || given[length] == ' ' ||
				length == 2))
			return true;
	}
	return false;
}

static void add_lcores(struct arguments *arguments, const struct options *options)
{
	char text[TEXT_BYTES];
	size_t used = (size_t)snprintf(text, sizeof(text), "0@%u", options->main_cpu);

	for (uint32_t i = 0; i < options->worker_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, ",%u@%u", EAL_LCORE(i),
			options->worker_cpus[i]);
	add_pair(arguments, "--lcores", text);
	add_pair(arguments, "--main-lcore", "0");
}

static void add_devices(struct arguments *arguments, const struct options *options)
{
	char text[PORT_DEVICE_BYTES], name[RTE_ETH_NAME_MAX_LEN];
	bool pci = false;

	for (uint32_t i = 0; i < options->port_count; i++) {
		const struct options_port *port = &options->ports[i];

		if (port_devargs(port, options->worker_count, text) != 0)
			arguments->failed = true;
		add_pair(arguments, port_is_pci(port->device) ? "-a" : "--vdev", text);
		pci = pci || port_is_pci(port->device);
		if (port->punt == NULL)
			continue;
		port_punt_name(i, name);
		snprintf(text, sizeof(text), "%s,iface=%s", name, port->punt);
		add_pair(arguments, "--vdev", text);
	}
	if (pci)
		return;
	add(arguments, "--no-pci");
	// No device reads memory by physical address, so EAL need not know any: that takes CAP_SYS_ADMIN.
	if (!eal_has(options, "--iova-mode"))
		add(arguments, "--iova-mode=va");
}

// A name of EAL's runtime directory that is this run directory's own.
static void add_prefix(struct arguments *arguments, const struct options *options)
{
	uint32_t sum = 0;
	char text[32];

	for (const char *p = options->run_dir; *p != '\0'; p++)
		sum = hash_mix32(sum ^ (uint8_t)*p);
	snprintf(text, sizeof(text), "ringway-%08" PRIx32, sum);
	add_pair(arguments, "--file-prefix", text);
}

static void add_memory(struct arguments *arguments, const struct options *options)
{
	char text[24];

	if (options->eal_count == 0)
		add(arguments, "--in-memory");
	// Without huge pages EAL takes all it will ever have at start: 64 MiB unless told otherwise.
	if (!eal_has(options, "--no-huge") || eal_has(options, "-m"))
		return;
	snprintf(text, sizeof(text), "%" PRIu64,
		(port_plan_buffers(options).bytes + EAL_OWN_BYTES) / MIB);
	add_pair(arguments, "-m", text);
}

// Bytes of huge pages that the flow tables need and have not got from the process before.
static uint64_t flow_bytes(const struct options *options)
{
	struct flow_file_place place = {.dir = options->huge_dir, .entries = options->flow_entries};
	uint64_t sum = 0;

	if (options->huge_dir == NULL)
		return 0;
	for (place.index = 0; place.index < options->worker_count; place.index++)
		sum += flow_file_missing(&place);
	return sum;
}

// Refuses to start when the pages are not there, instead of failing half-way with a line about an mbuf pool.
static int check_memory(const struct options *options, char *ret_error)
{
	uint64_t buffers = port_plan_buffers(options).bytes + EAL_OWN_BYTES;
	uint64_t workers = options->worker_count * hugemem_footprint(pipeline_worker_footprint());
	uint64_t flows = flow_bytes(options);
	uint64_t available = hugemem_available(), need = buffers + workers + flows;

	if (available >= need)
		return 0;
	snprintf(ret_error, EAL_ERROR_BYTES,
		"memory: %" PRIu64 " MiB of 2 MiB pages are needed (packet buffers %" PRIu64
		", workers %" PRIu64 ", flow tables %" PRIu64 "), %" PRIu64 " MiB are free: "
		"raise vm.nr_hugepages by %" PRIu64 ", or use --eal --no-huge for a trial",
		need / MIB, buffers / MIB, workers / MIB, flows / MIB, available / MIB,
		(need - available + HUGEMEM_PAGE_BYTES - 1) / HUGEMEM_PAGE_BYTES);
	return -ENOMEM;
}

int eal_start(const struct options *options, char ret_error[static EAL_ERROR_BYTES])
{
	static struct arguments given;
	struct arguments *arguments = &given;
	int result;

	hugemem_use_huge(!eal_has(options, "--no-huge"));
	result = check_memory(options, ret_error);
	if (result != 0)
		return result;
	add(arguments, "ringway-dataplane");
	// Before the operator's own, which may say otherwise: no socket but ours, and errors only.
	add(arguments, "--no-telemetry");
	add_pair(arguments, "--log-level", "lib.*:error");
	add_lcores(arguments, options);
	if (!eal_has(options, "--file-prefix"))
		add_prefix(arguments, options);
	add_devices(arguments, options);
	add_memory(arguments, options);
	for (uint32_t i = 0; i < options->eal_count; i++)
		add(arguments, options->eal[i]);
	if (arguments->failed) {
		snprintf(ret_error, EAL_ERROR_BYTES, "EAL: the arguments are too long");
		return -E2BIG;
	}
	if (rte_eal_init(arguments->argc, arguments->argv) < 0) {
		snprintf(ret_error, EAL_ERROR_BYTES, "EAL: %s; its own lines above say more",
			rte_strerror(rte_errno));
		return -rte_errno;
	}
	return 0;
}

void eal_stop(void)
{
	rte_eal_cleanup();
}
