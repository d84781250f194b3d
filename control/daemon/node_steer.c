// SPDX-License-Identifier: Apache-2.0
// Tells the XDP program of net_af_xdp ports which addresses are the dataplane's; all else on the link stays the kernel's.
#include "bpf/steer.h"
#include "control/daemon/node_private.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Finds the interface of a port that has a steering program. Returns false when the port is none.
static bool steered_interface(const char *device, char ret[static IF_NAMESIZE])
{
	const char *name = strstr(device, ",iface=");
	size_t length;

	if (strncmp(device, "net_af_xdp", 10) != 0 || strstr(device, ",xdp_prog=") == NULL ||
		name == NULL)
		return false;
	name += strlen(",iface=");
	length = strcspn(name, ",");
	if (length == 0 || length >= IF_NAMESIZE)
		return false;
	memcpy(ret, name, length);
	ret[length] = '\0';
	return true;
}

static void add(
	struct steer_address *at, const struct ip_addr *address, uint32_t bits, uint32_t kind)
{
	memset(at, 0, sizeof(*at));
	at->prefix.bits = DECAP_PREFIX_BASE_BITS + bits;
	at->prefix.family = address->family; // 4 and 6 in both worlds
	memcpy(at->prefix.bytes, address->bytes, sizeof(at->prefix.bytes));
	at->kind = kind;
}

static int steer_link(const struct config_link *link, const struct config_pools *pools, int ifindex)
{
	size_t count = 0;
	struct steer_address *addresses =
		calloc(link->address_count + pools->service_count + 1, sizeof(*addresses));
	int rc;

	if (addresses == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < link->address_count; i++) {
		const struct ip_addr *address = &link->addresses[i].address;

		add(&addresses[count++], address, address->family == ADDR_V4 ? 32 : 128,
			STEER_PORT);
	}
	for (uint32_t i = 0; i < pools->service_count; i++)
		add(&addresses[count++], &pools->services[i].address.address,
			pools->services[i].address.bits, STEER_VIP);
	rc = steer_set_addresses(ifindex, addresses, count);
	free(addresses);
	return rc;
}

void node_steer(struct node *node)
{
	const struct config_dataplane *dataplane = &node->config->dataplane;
	const struct document *document = node->now.document;

	for (uint32_t i = 0; i < dataplane->port_count && i < CONFIG_LINKS_MAX; i++) {
		struct node_steered *steered = &node->steered[i];
		char name[IF_NAMESIZE];
		uint32_t program = 0;
		int ifindex, rc;

		if (!steered_interface(dataplane->ports[i].device, name))
			continue;
		ifindex = (int)if_nametoindex(name);
		rc = ifindex == 0 ? -ENODEV : steer_program_id(ifindex, &program);
		// A restarted dataplane brings a new program with empty maps.
		if (rc == 0 &&
			(program != steered->program ||
				document->generation != steered->generation))
			rc = steer_link(&dataplane->ports[i], document->pools, ifindex);
		if (rc == 0) {
			steered->program = program;
			steered->generation = document->generation;
		}
		if (rc != steered->result)
			fprintf(stderr, "<%d>steering on %s: %s\n", rc == 0 ? 5 : 4, name,
				rc == 0 ? "addresses are set" : strerror(-rc));
		steered->result = rc;
	}
}
