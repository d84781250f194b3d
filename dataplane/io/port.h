// SPDX-License-Identifier: Apache-2.0
// Ports: any DPDK ethdev, one receive and one transmit queue for each worker.
#pragma once

#include "dataplane/io/options.h"

#include <rte_ethdev.h>
#include <rte_mempool.h>

#define PORT_DEVICE_BYTES 256u
#define PORT_ERROR_BYTES  256u
#define PORT_NO_PUNT      UINT16_MAX

struct port {
	uint16_t id;        // of ethdev
	uint16_t punt_id;   // of the TAP to the kernel, or PORT_NO_PUNT
	uint16_t rx_queues; // queue q is polled by worker q % worker_count
	uint16_t tx_queues; // queue w is worker w's
	int node;           // NUMA node of the device, -1 unknown
	bool link_up;       // as last seen
	bool started;
	char name[RTE_ETH_NAME_MAX_LEN];
};

// What the packet buffers of all ports take, known before EAL starts.
struct port_buffers {
	uint32_t count;
	uint16_t room; // bytes of one, headroom included
	uint64_t bytes;
};

// Plans the buffers: all descriptors of all queues full, all worker caches full, and some to spare.
struct port_buffers port_plan_buffers(const struct options *options);

// Tells whether a device is a PCI address, with or without a domain and devargs.
bool port_is_pci(const char *device);

// The devargs for EAL: the operator's, completed by what a virtual device needs to have a queue for each
// worker and room for the MTU. Returns 0, or -ENAMETOOLONG.
int port_devargs(const struct options_port *options, uint32_t worker_count,
	char ret[static PORT_DEVICE_BYTES]);

// The name under which ethdev knows a device of the command line.
void port_name(const char *device, char ret[static RTE_ETH_NAME_MAX_LEN]);

// The name of the TAP device of port index.
void port_punt_name(uint32_t index, char ret[static RTE_ETH_NAME_MAX_LEN]);

// Finds the device, gives it queues, receive-side scaling and an MTU, and starts it. Fills the pipeline's view.
// index: of options->ports. pool: of the device's node.
// Returns 0 or -errno with *ret_error saying which port, what is wrong and the way out.
int port_open(struct port *ret, struct pipeline_port *ret_view, const struct options *options,
	uint32_t index, struct rte_mempool *pool, char ret_error[static PORT_ERROR_BYTES]);

// The NUMA node of a device, -1 when it has none or is not there.
int port_node(const char *device);

// Notes a change of the link, and logs it. Context: main, now and then.
void port_watch_link(struct port *port);

// Stops and closes. A port that was not opened is left alone.
void port_close(struct port *port);
