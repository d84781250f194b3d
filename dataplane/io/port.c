// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/port.h"

#include "dataplane/io/log.h"

#include <errno.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define RX_DESCRIPTORS 1024u
#define TX_DESCRIPTORS 1024u
#define SPARE_BUFFERS  1024u // frames of main's own, answers on their way
#define CACHE_BUFFERS  256u  // a core's cache of the pool; DPDK lets it grow to half as much again
#define LINK_BYTES     (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)

// Frames of net_af_packet are 2,048 bytes with their own header unless it is told otherwise.
#define AF_PACKET_MTU_MAX 1900u

// Devices whose queues exist as soon as they are probed, whether anybody polls them or not: all of them are used.
static const char *const fixed_queue_drivers[] = {"net_af_packet", "net_ring", "net_pcap"};

struct opening {
	const struct options *options;
	const struct options_port *wish;
	struct rte_mempool *pool;
	struct rte_eth_dev_info info;
	struct port *port;
	char *error;
};

__attribute__((format(printf, 3, 4))) static int fail(
	const struct opening *opening, int result, const char *format, ...)
{
	va_list arguments;
	int used = snprintf(opening->error, PORT_ERROR_BYTES, "port %s: ", opening->wish->device);

	va_start(arguments, format);
	if (used > 0 && (unsigned)used < PORT_ERROR_BYTES)
		vsnprintf(opening->error + used, PORT_ERROR_BYTES - (unsigned)used, format,
			arguments);
	va_end(arguments);
	return result;
}

struct port_buffers port_plan_buffers(const struct options *options)
{
	uint32_t devices = options->port_count, mtu = 0, wanted;
	struct port_buffers plan;

	for (uint32_t i = 0; i < options->port_count; i++) {
		devices += options->ports[i].punt != NULL;
		mtu = RTE_MAX(mtu, (uint32_t)options->ports[i].mtu);
	}
	wanted = devices * options->worker_count * (RX_DESCRIPTORS + TX_DESCRIPTORS) +
		(options->worker_count + 1) * (CACHE_BUFFERS + CACHE_BUFFERS / 2 + PACKET_BURST) +
		SPARE_BUFFERS;
	// A pool wastes least when it is one below a power of two (rte_mempool.h).
	plan.count = rte_align32pow2(wanted + 1) - 1;
	plan.room = (uint16_t)RTE_ALIGN_CEIL(
		RTE_PKTMBUF_HEADROOM + RTE_MAX(mtu + LINK_BYTES, 2048u), RTE_CACHE_LINE_SIZE);
	plan.bytes = (uint64_t)plan.count *
		(sizeof(struct rte_mbuf) + plan.room + sizeof(struct rte_mempool_objhdr) +
			RTE_CACHE_LINE_SIZE);
	return plan;
}

bool port_is_pci(const char *device)
{
	unsigned domain, bus, slot, function;

	return sscanf(device, "%x:%x:%x.%u", &domain, &bus, &slot, &function) == 4 ||
		sscanf(device, "%x:%x.%u", &bus, &slot, &function) == 3;
}

void port_name(const char *device, char ret[static RTE_ETH_NAME_MAX_LEN])
{
	unsigned bus, slot, function;
	size_t length = strcspn(device, ",");

	if (sscanf(device, "%x:%x.%u", &bus, &slot, &function) == 3)
		snprintf(ret, RTE_ETH_NAME_MAX_LEN, "0000:%02x:%02x.%u", bus, slot, function);
	else
		snprintf(ret, RTE_ETH_NAME_MAX_LEN, "%.*s", (int)length, device);
}

void port_punt_name(uint32_t index, char ret[static RTE_ETH_NAME_MAX_LEN])
{
	snprintf(ret, RTE_ETH_NAME_MAX_LEN, "net_tap_punt%u", index);
}

int port_devargs(const struct options_port *options, uint32_t worker_count,
	char ret[static PORT_DEVICE_BYTES])
{
	const char *device = options->device;
	char queues[32] = "", frames[48] = "";

	if (strncmp(device, "net_af_packet", 13) == 0) {
		if (strstr(device, "qpairs=") == NULL)
			snprintf(queues, sizeof(queues), ",qpairs=%u", worker_count);
		if (strstr(device, "framesz=") == NULL && options->mtu > AF_PACKET_MTU_MAX)
			snprintf(frames, sizeof(frames),
				",framesz=16384,blocksz=65536,framecnt=512");
	}
	return snprintf(ret, PORT_DEVICE_BYTES, "%s%s%s", device, queues, frames) <
			(int)PORT_DEVICE_BYTES
		? 0
		: -ENAMETOOLONG;
}

int port_node(const char *device)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;

	port_name(device, name);
	return rte_eth_dev_get_port_by_name(name, &id) == 0 ? rte_eth_dev_socket_id(id) : -1;
}

static bool has_fixed_queues(const struct rte_eth_dev_info *info)
{
	for (size_t i = 0; i < RTE_DIM(fixed_queue_drivers); i++) {
		if (strcmp(info->driver_name, fixed_queue_drivers[i]) == 0)
			return true;
	}
	return false;
}

// Decides how many queues the port gets, or refuses when its workers could not send.
static int plan_queues(struct opening *opening)
{
	uint32_t workers = opening->options->worker_count;
	struct rte_eth_dev_info *info = &opening->info;
	struct port *port = opening->port;

	if (info->max_tx_queues < workers) {
		return fail(opening, -ENOSPC,
			"%u workers need a transmit queue each, the device has %u; "
			"give it more (qpairs=, queue_count=, tx_pcap= ...) or name fewer --workers",
			workers, info->max_tx_queues);
	}
	port->tx_queues = (uint16_t)workers;
	port->rx_queues = has_fixed_queues(info) ? info->max_rx_queues
						 : (uint16_t)RTE_MIN(workers, info->max_rx_queues);
	if (port->rx_queues == 0)
		return fail(opening, -ENOSPC, "the device has no receive queue");
	if (port->rx_queues < workers)
		log_warning(
			"port %s: %u receive queues for %u workers; workers %u.. get none of it",
			port->name, port->rx_queues, workers, port->rx_queues);
	return 0;
}

// net_af_packet claims frames of a standard Ethernet, and DPDK believes it; in truth its ring takes AF_PACKET_MTU_MAX and
// more (port_devargs()), and the kernel's interface decides.
static bool claims_too_little(const struct opening *opening)
{
	return strcmp(opening->info.driver_name, "net_af_packet") == 0 &&
		opening->wish->mtu + (uint32_t)RTE_ETHER_HDR_LEN > opening->info.max_rx_pktlen;
}

static int check_kernel_mtu(const struct opening *opening)
{
	struct ifreq request = {};
	int result = 0, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || if_indextoname(opening->info.if_index, request.ifr_name) == NULL ||
		ioctl(fd, SIOCGIFMTU, &request) != 0)
		result = fail(
			opening, -errno, "the interface's MTU cannot be read: %s", strerror(errno));
	else if (request.ifr_mtu < opening->wish->mtu)
		result = fail(opening, -ERANGE,
			"--mtu %u: the interface has %d; ip link set dev %s mtu %u",
			opening->wish->mtu, request.ifr_mtu, request.ifr_name, opening->wish->mtu);
	if (fd >= 0)
		close(fd);
	return result;
}

static int configure(struct opening *opening)
{
	const struct rte_eth_dev_info *info = &opening->info;
	struct port *port = opening->port;
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	int result;

	// Only what the device offers; the pipeline hashes by itself, this spreads flows over the queues.
	conf.rx_adv_conf.rss_conf.rss_hf =
		info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	if (port->rx_queues > 1 && conf.rx_adv_conf.rss_conf.rss_hf != 0)
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	else
		conf.rx_adv_conf.rss_conf.rss_hf = 0;
	if (opening->wish->mtu >= info->min_mtu && opening->wish->mtu <= info->max_mtu &&
		!claims_too_little(opening))
		conf.rxmode.mtu = opening->wish->mtu;
	// Free in bulk without looking: every buffer is of one pool and has one owner.
	if (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE && rte_socket_count() == 1)
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	result = rte_eth_dev_configure(port->id, port->rx_queues, port->tx_queues, &conf);
	if (result != 0)
		return fail(opening, result, "%u receive and %u transmit queues: %s",
			port->rx_queues, port->tx_queues, strerror(-result));
	return 0;
}

static int set_mtu(struct opening *opening)
{
	uint16_t mtu = 0, id = opening->port->id;
	int result;

	if (claims_too_little(opening))
		return check_kernel_mtu(opening);
	result = rte_eth_dev_get_mtu(id, &mtu);
	if (result == 0 && mtu == opening->wish->mtu)
		return 0;
	result = rte_eth_dev_set_mtu(id, opening->wish->mtu);
	// A device without the notion of an MTU (a ring, a file) carries any frame.
	if (result == 0 || result == -ENOTSUP)
		return 0;
	return fail(opening, result, "--mtu %u: %s (the device takes %u to %u)", opening->wish->mtu,
		strerror(-result), opening->info.min_mtu, opening->info.max_mtu);
}

static int set_queues(struct opening *opening)
{
	uint16_t rx = RX_DESCRIPTORS, tx = TX_DESCRIPTORS, id = opening->port->id;
	int node = rte_eth_dev_socket_id(id);
	unsigned socket = node < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)node;
	int result = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx);

	for (uint16_t q = 0; q < opening->port->rx_queues && result == 0; q++)
		result = rte_eth_rx_queue_setup(id, q, rx, socket, NULL, opening->pool);
	for (uint16_t q = 0; q < opening->port->tx_queues && result == 0; q++)
		result = rte_eth_tx_queue_setup(id, q, tx, socket, NULL);
	if (result != 0)
		return fail(opening, result, "queues: %s", strerror(-result));
	return 0;
}

static int start(struct opening *opening)
{
	uint16_t id = opening->port->id;
	int result = rte_eth_dev_start(id);

	if (result != 0)
		return fail(opening, result, "start: %s", strerror(-result));
	opening->port->started = true;
	// Neighbour solicitations come to multicast addresses (RFC 4291 section 2.7.1). A device that filters nothing
	// has no such switch.
	result = rte_eth_allmulticast_enable(id);
	if (result != 0 && result != -ENOTSUP)
		log_warning("port %s: multicast stays filtered: %s", opening->port->name,
			strerror(-result));
	return 0;
}

// Brings up the TAP beside the port: as many queues, the same MAC, so that the kernel takes what is for it.
static int open_punt(struct opening *opening, uint32_t index)
{
	struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	uint16_t queues = (uint16_t)opening->options->worker_count, id;
	struct rte_ether_addr mac;
	char name[RTE_ETH_NAME_MAX_LEN];
	int result;

	port_punt_name(index, name);
	if (rte_eth_dev_get_port_by_name(name, &id) != 0)
		return fail(
			opening, -ENODEV, "--punt %s: no TAP could be made", opening->wish->punt);
	result = rte_eth_dev_configure(id, queues, queues, &conf);
	for (uint16_t q = 0; q < queues && result == 0; q++)
		result = rte_eth_rx_queue_setup(id, q, RX_DESCRIPTORS, 0, NULL, opening->pool);
	for (uint16_t q = 0; q < queues && result == 0; q++)
		result = rte_eth_tx_queue_setup(id, q, TX_DESCRIPTORS, 0, NULL);
	if (result == 0)
		result = rte_eth_macaddr_get(opening->port->id, &mac);
	if (result == 0)
		result = rte_eth_dev_default_mac_addr_set(id, &mac);
	if (result == 0)
		result = rte_eth_dev_start(id);
	if (result != 0)
		return fail(
			opening, result, "--punt %s: %s", opening->wish->punt, strerror(-result));
	opening->port->punt_id = id;
	return 0;
}

static int view(struct opening *opening, struct pipeline_port *ret)
{
	const struct options_port *wish = opening->wish;
	struct rte_ether_addr mac;
	int result = rte_eth_macaddr_get(opening->port->id, &mac);

	if (result != 0)
		return fail(opening, result, "MAC address: %s", strerror(-result));
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->mac, mac.addr_bytes, sizeof(ret->mac));
	ret->mtu = wish->mtu;
	ret->vlan = wish->vlan;
	ret->address_count = wish->address_count;
	memcpy(ret->addresses, wish->addresses, sizeof(ret->addresses));
	ret->gateway4 = wish->gateway4;
	ret->gateway6 = wish->gateway6;
	return 0;
}

int port_open(struct port *ret, struct pipeline_port *ret_view, const struct options *options,
	uint32_t index, struct rte_mempool *pool, char ret_error[static PORT_ERROR_BYTES])
{
	struct opening opening = {.options = options,
		.wish = &options->ports[index],
		.pool = pool,
		.port = ret,
		.error = ret_error};
	int result;

	memset(ret, 0, sizeof(*ret));
	ret->punt_id = PORT_NO_PUNT;
	port_name(opening.wish->device, ret->name);
	// EAL carries on without a device that failed to probe, so its absence is found here.
	if (rte_eth_dev_get_port_by_name(ret->name, &ret->id) != 0)
		return fail(&opening, -ENODEV,
			"no such device; EAL's lines above say why, if its driver found it at all");
	ret->node = rte_eth_dev_socket_id(ret->id);
	result = rte_eth_dev_info_get(ret->id, &opening.info);
	if (result != 0)
		return fail(&opening, result, "%s", strerror(-result));
	result = plan_queues(&opening);
	if (result == 0)
		result = configure(&opening);
	if (result == 0)
		result = set_mtu(&opening);
	if (result == 0)
		result = set_queues(&opening);
	if (result == 0)
		result = start(&opening);
	if (result == 0 && opening.wish->punt != NULL)
		result = open_punt(&opening, index);
	return result != 0 ? result : view(&opening, ret_view);
}

void port_watch_link(struct port *port)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(port->id, &link) != 0)
		return;
	if ((link.link_status == RTE_ETH_LINK_UP) == port->link_up)
		return;
	port->link_up = link.link_status == RTE_ETH_LINK_UP;
	log_notice("port %s: link %s", port->name, port->link_up ? "up" : "down");
}

void port_close(struct port *port)
{
	if (!port->started)
		return;
	if (port->punt_id != PORT_NO_PUNT) {
		rte_eth_dev_stop(port->punt_id);
		rte_eth_dev_close(port->punt_id);
	}
	rte_eth_dev_stop(port->id);
	rte_eth_dev_close(port->id);
	port->started = false;
}
