// SPDX-License-Identifier: Apache-2.0
#include "control/config/tables.h"

#include "control/config/config.h"

#include <netinet/in.h>

// One row reads: name, kind, flags, where it is stored, and by name whatever else there is to say.
#define AT(type, member) .offset = offsetof(struct type, member)
#define LISTED(type, member, counter) \
	AT(type, member), .count_offset = offsetof(struct type, counter)
#define RANGE(least, most) .min = (least), .max = (most)
#define END                  \
	{                    \
		.name = NULL \
	}

_Static_assert(sizeof(enum config_backend_state) == sizeof(uint32_t), "choices are 32 bits");

const struct schema_choice config_protocols[] = {
	{"tcp", IPPROTO_TCP},
	{"udp", IPPROTO_UDP},
	{NULL, 0},
};

const struct schema_choice config_ring_versions[] = {
	{"v1", RING_V1},
	{"v2", RING_V2},
	{"v3", RING_V3},
	{NULL, 0},
};

const struct schema_choice config_backend_states[] = {
	{"up", CONFIG_BACKEND_UP},
	{"drain", CONFIG_BACKEND_DRAIN},
	{"down", CONFIG_BACKEND_DOWN},
	{NULL, 0},
};

const struct schema_choice config_affinities[] = {
	{"flow", FLOW_AFFINITY_FLOW},
	{"client", FLOW_AFFINITY_CLIENT},
	{"destination", FLOW_AFFINITY_DESTINATION},
	{"quic", FLOW_AFFINITY_QUIC},
	{NULL, 0},
};

const struct schema_choice config_tunnels[] = {
	{"ipip", SNAPSHOT_TUNNEL_IPIP},
	{"gue", SNAPSHOT_TUNNEL_GUE},
	{"gre", SNAPSHOT_TUNNEL_GRE},
	{"l2", SNAPSHOT_TUNNEL_L2},
	{NULL, 0},
};

static const struct schema_choice seeds[] = {
	{"address", CONFIG_SEED_ADDRESS},
	{"nginx", CONFIG_SEED_NGINX},
	{NULL, 0},
};

static const struct schema_choice service_states[] = {
	{"flows", CONFIG_STATE_FLOWS},
	{"none", CONFIG_STATE_NONE},
	{NULL, 0},
};

static const struct schema_choice unknowns[] = {
	{"punt", SNAPSHOT_UNKNOWN_PUNT},
	{"drop", SNAPSHOT_UNKNOWN_DROP},
	{NULL, 0},
};

static const struct schema_choice idles[] = {
	{"poll", CONFIG_IDLE_POLL},
	{"sleep", CONFIG_IDLE_SLEEP},
	{NULL, 0},
};

static const struct schema_choice store_types[] = {
	{"file", CONFIG_STORE_FILE},
	{"etcd", CONFIG_STORE_ETCD},
	{NULL, 0},
};

static const struct schema_choice plaintexts[] = {
	{"loopback", CONFIG_PLAINTEXT_LOOPBACK},
	{"anywhere", CONFIG_PLAINTEXT_ANYWHERE},
	{NULL, 0},
};

static const struct schema_field backend_fields[] = {
	{"name", SCHEMA_NAME, SCHEMA_REQUIRED | SCHEMA_ID, AT(config_backend, name),
		.text = "name of the backend, unique in its pool"},
	{"address", SCHEMA_ADDRESS, SCHEMA_REQUIRED, AT(config_backend, address),
		.text = "address that packets are sent to; its canonical text seeds the ring"},
	{"port", SCHEMA_NUMBER, SCHEMA_OPTIONAL, AT(config_backend, port), RANGE(1, 65535),
		.text = "part of the ring seed only; packets keep their port"},
	{"weight", SCHEMA_NUMBER, 0, AT(config_backend, weight), RANGE(1, CONFIG_WEIGHT_MAX),
		.preset = "1",
		.hint = "to stop new flows use `state: drain`; weight 0 is not allowed",
		.text = "share of the ring beside the other backends"},
	{"tags", SCHEMA_NAME, SCHEMA_LIST | SCHEMA_SORTED, LISTED(config_backend, tags, tag_count),
		.items_max = CONFIG_TAGS_MAX, .text = "words that services can require"},
	{"state", SCHEMA_CHOICE, 0, AT(config_backend, state), .choices = config_backend_states,
		.preset = "up",
		.text = "`drain` keeps its flows and gets no new ones; `down` loses its flows, too"},
	{"server", SCHEMA_TEXT, 0, AT(config_backend, server),
		.text = "with `seed: nginx`: the text of the `server` directive as it stands there, a "
			"name or an IPv6 spelling of its own; made from address and port unless given"},
	END,
};

const struct schema_map config_backend_table = {
	"backend", sizeof(struct config_backend), backend_fields};

static const struct schema_field ring_fields[] = {
	{"version", SCHEMA_CHOICE, SCHEMA_REQUIRED, AT(config_ring, version),
		.choices = config_ring_versions,
		.text = "rule that makes and stores the points: v1, v2 or v3"},
	{"points", SCHEMA_NUMBER, SCHEMA_OPTIONAL, AT(config_ring, points), RANGE(1, 1000000),
		.text = "points for each unit of weight; v1 always has 160, v2 and v3 have 16 "
			"unless given"},
	{"balance", SCHEMA_RATIO, SCHEMA_OPTIONAL, AT(config_ring, balance), RANGE(1000, 500000),
		.text = "v3 only: how far a backend's share may be from its weight's"},
	{"seed", SCHEMA_CHOICE, 0, AT(config_ring, seed), .choices = seeds, .preset = "address",
		.text = "`nginx` writes IPv6 addresses into the seed as nginx does, in brackets"},
	{"hash_seed", SCHEMA_KEY16, SCHEMA_OPTIONAL | SCHEMA_SECRET, AT(config_ring, hash_seed),
		.preset = "00000000000000000000000000000000",
		.text = "this ring hashes keys under it and not under the fleet's `hash_seed`; secret. "
			"A pool keeps what it has unless given; a cutover changes it"},
	END,
};

const struct schema_map config_ring_table = {"ring", sizeof(struct config_ring), ring_fields};

static const struct schema_field pool_fields[] = {
	{"name", SCHEMA_NAME, SCHEMA_REQUIRED | SCHEMA_ID, AT(config_pool, name),
		.text = "name of the pool, unique"},
	{"ring", SCHEMA_MAP, SCHEMA_REQUIRED, AT(config_pool, ring), .map = &config_ring_table,
		.text = "the pool's ring"},
	{"backends", SCHEMA_MAP, SCHEMA_LIST, LISTED(config_pool, backends, backend_count),
		.map = &config_backend_table, .items_max = CONFIG_BACKENDS_MAX,
		.text = "servers of the pool"},
	END,
};

const struct schema_map config_pool_table = {"pool", sizeof(struct config_pool), pool_fields};

static const struct schema_field tunnel_fields[] = {
	{"type", SCHEMA_CHOICE, 0, AT(config_tunnel, type), .choices = config_tunnels,
		.preset = "ipip",
		.text = "how packets reach the backends; `l2` needs them on the same link"},
	{"port", SCHEMA_NUMBER, 0, AT(config_tunnel, port), RANGE(1, 65535), .preset = "6080",
		.text = "GUE: destination port of the outer UDP header"},
	{"source4", SCHEMA_PREFIX, SCHEMA_OPTIONAL, AT(config_tunnel, source4),
		.text = "outer IPv4 source; host bits carry entropy. The port's own address "
			"unless given"},
	{"source6", SCHEMA_PREFIX, SCHEMA_OPTIONAL, AT(config_tunnel, source6),
		.text = "outer IPv6 source, likewise"},
	END,
};

static const struct schema_map tunnel_table = {
	"tunnel", sizeof(struct config_tunnel), tunnel_fields};

static const struct schema_field timeout_fields[] = {
	{"syn", SCHEMA_SECONDS, 0, AT(config_timeouts, syn_s), RANGE(1, CONFIG_IDLE_MAX_S),
		.preset = "30", .unit = "s", .text = "TCP that has only shown SYNs"},
	{"established", SCHEMA_SECONDS, 0, AT(config_timeouts, established_s),
		RANGE(1, CONFIG_IDLE_MAX_S), .preset = "900", .unit = "s", .text = "TCP"},
	{"closing", SCHEMA_SECONDS, 0, AT(config_timeouts, closing_s), RANGE(1, CONFIG_IDLE_MAX_S),
		.preset = "30", .unit = "s", .text = "TCP after FIN or RST"},
	{"udp", SCHEMA_SECONDS, 0, AT(config_timeouts, udp_s), RANGE(1, CONFIG_IDLE_MAX_S),
		.preset = "60", .unit = "s", .text = "UDP"},
	END,
};

static const struct schema_map timeouts_table = {
	"timeouts map", sizeof(struct config_timeouts), timeout_fields};

static const struct schema_field service_fields[] = {
	{"name", SCHEMA_NAME, SCHEMA_REQUIRED | SCHEMA_ID, AT(config_service, name),
		.text = "name of the service, unique"},
	{"address", SCHEMA_PREFIX, SCHEMA_REQUIRED, AT(config_service, address),
		.text = "virtual address, or a prefix of them"},
	{"protocol", SCHEMA_CHOICE, SCHEMA_REQUIRED, AT(config_service, protocol),
		.choices = config_protocols, .text = "tcp or udp"},
	{"ports", SCHEMA_NUMBER, SCHEMA_LIST, LISTED(config_service, ports, port_count),
		RANGE(1, 65535), .items_max = CONFIG_PORTS_MAX,
		.text = "destination ports; any port unless given"},
	{"pool", SCHEMA_NAME, SCHEMA_REQUIRED, AT(config_service, pool),
		.text = "pool that serves it"},
	{"requires", SCHEMA_NAME, SCHEMA_LIST | SCHEMA_SORTED,
		LISTED(config_service, requires, require_count), .items_max = CONFIG_TAGS_MAX,
		.text = "only backends that have all these tags: a subset ring"},
	{"affinity", SCHEMA_CHOICE, 0, AT(config_service, affinity), .choices = config_affinities,
		.preset = "flow",
		.text = "what the ring hashes: the whole flow, the client's address, the "
			"destination address, or the QUIC connection ID"},
	{"tunnel", SCHEMA_MAP, 0, AT(config_service, tunnel), .map = &tunnel_table,
		.text = "way to the backends"},
	{"state", SCHEMA_CHOICE, 0, AT(config_service, state), .choices = service_states,
		.preset = "flows", .text = "`none`: no flow table, every packet asks the ring"},
	{"timeouts", SCHEMA_MAP, 0, AT(config_service, timeouts), .map = &timeouts_table,
		.text = "idle times after which a flow is forgotten"},
	END,
};

const struct schema_map config_service_table = {
	"service", sizeof(struct config_service), service_fields};

static const struct schema_field pools_fields[] = {
	{"unknown", SCHEMA_CHOICE, 0, AT(config_pools, unknown), .choices = unknowns,
		.preset = "punt",
		.text = "packets for no service: handed to the kernel, or dropped"},
	{"hash_seed", SCHEMA_KEY16, SCHEMA_OPTIONAL | SCHEMA_SECRET, AT(config_pools, hash_seed),
		.preset = "00000000000000000000000000000000",
		.text = "keys the flow hash; must be the same on all nodes that share addresses, and "
			"secret. Made at random, for this store alone, unless given"},
	{"pools", SCHEMA_MAP, SCHEMA_LIST, LISTED(config_pools, pools, pool_count),
		.map = &config_pool_table, .items_max = CONFIG_POOLS_MAX,
		.text = "named sets of backends"},
	{"services", SCHEMA_MAP, SCHEMA_LIST, LISTED(config_pools, services, service_count),
		.map = &config_service_table, .items_max = CONFIG_SERVICES_MAX,
		.text = "virtual addresses and the pools that serve them"},
	END,
};

const struct schema_map config_pools_table = {
	"pools file", sizeof(struct config_pools), pools_fields};

static const struct schema_field tls_fields[] = {
	{"ca", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_tls, ca),
		.text = "file of the authorities to trust, alone; the system's unless given"},
	{"certificate", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_tls, certificate),
		.text = "file of the client certificate; without a common name"},
	{"key", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_tls, key),
		.text = "file of its private key; mode 0400"},
	END,
};

static const struct schema_map tls_table = {"tls map", sizeof(struct config_tls), tls_fields};

static const struct schema_field store_fields[] = {
	{"type", SCHEMA_CHOICE, SCHEMA_RESTART, AT(config_store, type), .choices = store_types,
		.preset = "file", .text = "`file`: this node alone; `etcd`: a fleet"},
	{"path", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_store, path), .preset = "/var/lib/ringway",
		.text = "directory of the state"},
	{"endpoints", SCHEMA_TEXT, SCHEMA_RESTART | SCHEMA_LIST,
		LISTED(config_store, endpoints, endpoint_count), .items_max = 16,
		.text = "etcd: URLs of its members"},
	{"prefix", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_store, prefix), .preset = "/ringway",
		.text = "etcd: in front of all keys"},
	{"user", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_store, user),
		.text = "etcd: user name; no authentication unless given"},
	{"password_file", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_store, password_file),
		.text = "etcd: file that holds the password in its first line; mode 0400"},
	{"plaintext", SCHEMA_CHOICE, SCHEMA_RESTART, AT(config_store, plaintext),
		.choices = plaintexts, .preset = "loopback",
		.text = "etcd: where endpoints may be http://"},
	{"tls", SCHEMA_MAP, SCHEMA_RESTART, AT(config_store, tls), .map = &tls_table,
		.text = "etcd: certificates"},
	END,
};

static const struct schema_map store_table = {
	"store map", sizeof(struct config_store), store_fields};

static const struct schema_field link_fields[] = {
	{"device", SCHEMA_TEXT, SCHEMA_REQUIRED | SCHEMA_RESTART | SCHEMA_ID,
		AT(config_link, device),
		.text = "PCI address, or a vdev such as \"net_af_packet0,iface=eth1\""},
	{"mtu", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_link, mtu), RANGE(576, 9600),
		.preset = "1500", .unit = "bytes",
		.text = "largest IP packet on the link, tunnel headers included"},
	{"vlan", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_link, vlan), RANGE(0, 4094),
		.preset = "0", .text = "the link is this VLAN of a trunk; 0: the link is untagged"},
	{"addresses", SCHEMA_LINK, SCHEMA_RESTART | SCHEMA_LIST,
		LISTED(config_link, addresses, address_count), .items_max = 16,
		.text = "own addresses with the prefix length of the link"},
	{"gateways", SCHEMA_ADDRESS, SCHEMA_RESTART | SCHEMA_LIST,
		LISTED(config_link, gateways, gateway_count), .items_max = 8,
		.text = "next hops for what is not on the link, one of each family"},
	{"punt", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_link, punt),
		.text = "name of the TAP interface by which the kernel gets packets for the host; "
			"they are dropped unless given"},
	END,
};

static const struct schema_map link_table = {"port", sizeof(struct config_link), link_fields};

static const struct schema_field dataplane_fields[] = {
	{"eal", SCHEMA_TEXT, SCHEMA_RESTART | SCHEMA_LIST, LISTED(config_dataplane, eal, eal_count),
		.items_max = 64,
		.text = "arguments for DPDK; lcores come from `main` and `workers`"},
	{"main", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_dataplane, main), RANGE(0, 1023),
		.preset = "0", .text = "CPU of the main lcore (housekeeping)"},
	{"workers", SCHEMA_NUMBER, SCHEMA_REQUIRED | SCHEMA_RESTART | SCHEMA_LIST,
		LISTED(config_dataplane, workers, worker_count), RANGE(0, 1023),
		.items_max = CONFIG_WORKERS_MAX, .text = "CPUs of the workers, one each"},
	{"flow_entries", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_dataplane, flow_entries),
		RANGE(1024, 1u << 30), .preset = "1048576",
		.text = "room of each worker's flow table, a power of two; 8 bytes each"},
	{"huge_dir", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_dataplane, huge_dir),
		.text = "hugetlbfs directory for the flow tables; the run directory unless given"},
	{"user", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_dataplane, user),
		.text = "user that the dataplane becomes once its ports are open; stays root "
			"unless given"},
	{"idle", SCHEMA_CHOICE, SCHEMA_RESTART, AT(config_dataplane, idle), .choices = idles,
		.preset = "poll",
		.text = "what a worker does while no packet comes; `sleep` trades up to 50 us of "
			"delay for an idle CPU"},
	{"services", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_dataplane, services),
		RANGE(1, SNAPSHOT_SERVICES_MAX), .preset = "1024",
		.text = "services that the statistics have room for"},
	{"pools", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_dataplane, pools),
		RANGE(1, SNAPSHOT_POOLS_MAX), .preset = "1024",
		.text = "pools that the statistics have room for"},
	{"backends", SCHEMA_NUMBER, SCHEMA_RESTART, AT(config_dataplane, backends),
		RANGE(1, SNAPSHOT_BACKENDS_MAX), .preset = "65536",
		.text = "backends that the statistics have room for"},
	{"ports", SCHEMA_MAP, SCHEMA_REQUIRED | SCHEMA_RESTART | SCHEMA_LIST,
		LISTED(config_dataplane, ports, port_count), .map = &link_table,
		.items_max = CONFIG_LINKS_MAX, .text = "network ports"},
	END,
};

static const struct schema_map dataplane_table = {
	"dataplane map", sizeof(struct config_dataplane), dataplane_fields};

static const struct schema_field control_fields[] = {
	{"group", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_control, group),
		.text = "group of ringwayd's socket; members of no other group only look"},
	{"viewers", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_control, viewers),
		.text = "group that may look"},
	{"operators", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_control, operators),
		.text = "group that may set weights, drain, move shares and roll back"},
	{"admins", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_control, admins),
		.text = "group that may apply whole configurations; root always may"},
	END,
};

static const struct schema_map control_table = {
	"control map", sizeof(struct config_control), control_fields};

static const struct schema_field node_fields[] = {
	{"node", SCHEMA_NAME, SCHEMA_REQUIRED | SCHEMA_RESTART, AT(config_node, node),
		.text = "name of this node, unique in the fleet"},
	{"datacenter", SCHEMA_NAME, SCHEMA_RESTART, AT(config_node, datacenter),
		.preset = "default", .text = "where it stands; cutovers move by datacenter"},
	{"run_dir", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_node, run_dir), .preset = "/run/ringway",
		.text = "directory of sockets and statistics"},
	{"pools_file", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_node, pools_file),
		.text = "applied once, when the store is still empty"},
	{"metrics", SCHEMA_TEXT, SCHEMA_RESTART, AT(config_node, metrics),
		.text = "address:port of the Prometheus exporter; none unless given"},
	{"control", SCHEMA_MAP, SCHEMA_RESTART, AT(config_node, control), .map = &control_table,
		.text = "who may talk to ringwayd"},
	{"store", SCHEMA_MAP, SCHEMA_RESTART, AT(config_node, store), .map = &store_table,
		.text = "where the committed state is kept"},
	{"dataplane", SCHEMA_MAP, SCHEMA_REQUIRED | SCHEMA_RESTART, AT(config_node, dataplane),
		.map = &dataplane_table, .text = "what ringway-dataplane is started with"},
	END,
};

const struct schema_map config_node_table = {"node file", sizeof(struct config_node), node_fields};
