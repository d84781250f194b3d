// SPDX-License-Identifier: Apache-2.0
// The command line of ringway-dataplane. There is no configuration language here: `ringway dataplane-args` turns
// node.yaml into these flags.
#pragma once

#include "dataplane/pipeline/pipeline.h"

#define OPTIONS_EAL_MAX    64u
#define OPTIONS_FILES_MAX  8u
#define OPTIONS_ERROR_SIZE 256u

struct options_port {
	const char *device; // "0000:3b:00.0" or "net_af_packet0,iface=eth1", devargs included
	const char *punt;   // name of the kernel's TAP interface for this port; NULL: none
	uint16_t mtu;       // of IP packets
	uint16_t vlan;      // 1..4094; 0: untagged
	uint8_t address_count;
	struct pipeline_address addresses[PIPELINE_ADDRESSES_MAX];
	struct ip_addr gateway4;
	struct ip_addr gateway6;
};

struct options_replay {
	const char *input; // NULL: no replay
	const char *output;
	const char *snapshot;
	uint8_t neighbour_mac[6];
};

// Strings point into argv, or into texts.
struct options {
	const char *run_dir;
	const char *huge_dir; // NULL: flow tables are ordinary files in run_dir
	const char *user;     // NULL: stay
	uint32_t main_cpu;
	uint32_t worker_cpus[PIPELINE_WORKERS_MAX];
	uint32_t worker_count;
	uint32_t flow_entries; // a worker
	struct stats_geometry capacity;
	struct options_port ports[PIPELINE_PORTS_MAX];
	uint32_t port_count;
	const char *eal[OPTIONS_EAL_MAX];
	uint32_t eal_count;
	struct options_replay replay;
	char *texts[OPTIONS_FILES_MAX]; // of the files that --args names; owned
	uint32_t text_count;
	bool idle_sleep;
	bool keep_privileges;
};

enum options_outcome {
	OPTIONS_RUN = 0,
	OPTIONS_HELP,    // --help was asked for
	OPTIONS_VERSION, // --version was asked for
	OPTIONS_BAD,     // ret_error names the flag, the value and what it should be
};

// Reads the command line. Context: main, once; getopt's state is the process's.
enum options_outcome options_parse(
	int argc, char **argv, struct options *ret, char ret_error[static OPTIONS_ERROR_SIZE]);

// Frees what options own; what points into it is gone.
void options_free(struct options *options);

// The text of --help.
const char *options_help(void);
