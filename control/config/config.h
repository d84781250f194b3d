// SPDX-License-Identifier: Apache-2.0
// The configuration as the operator means it: pools.yaml and node.yaml as plain structs.
//
// A model is made by config_pools_read() or config_node_read() (reader.h), owns all that it points to and is freed
// at once. Keys that the file leaves out have their defaults here, so no user of a model knows a default.
// Strings are NUL-terminated and never NULL (absent: ""). Arrays keep the file's order; tags are sorted.
#pragma once

#include "common/addr.h"
#include "common/flow.h"
#include "common/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define CONFIG_BYTES_MAX       (32u << 20) // of one file
#define CONFIG_NAME_BYTES      64u         // with the NUL
#define CONFIG_WEIGHT_MAX      65535u
#define CONFIG_SERVICES_MAX    SNAPSHOT_SERVICES_MAX
#define CONFIG_POOLS_MAX       SNAPSHOT_POOLS_MAX
#define CONFIG_BACKENDS_MAX    RING_MEMBERS_MAX // a pool
#define CONFIG_TAGS_MAX        64u              // a backend or service
#define CONFIG_PORTS_MAX       1024u            // a service
#define CONFIG_WORKERS_MAX     64u
#define CONFIG_LINKS_MAX       32u
#define CONFIG_IDLE_MAX_S      7200u
#define CONFIG_GUE_PORT        6080u
#define CONFIG_V1_POINTS       160u
#define CONFIG_POINTS_DEFAULT  16u
#define CONFIG_BALANCE_DEFAULT 100000u // millionths

struct config_prefix {
	struct ip_addr address; // family ADDR_NONE: not set
	uint32_t bits;
};

// What the operator wants of a backend; health may say less, never more.
enum config_backend_state {
	CONFIG_BACKEND_UP,
	CONFIG_BACKEND_DRAIN, // keeps its flows, gets no new ones
	CONFIG_BACKEND_DOWN,  // its flows pick again
};

struct config_backend {
	const char *name; // unique in its pool
	struct ip_addr address;
	uint32_t port;   // part of the ring seed; 0: none
	uint32_t weight; // 1..CONFIG_WEIGHT_MAX
	const char **tags;
	uint32_t tag_count;
	enum config_backend_state state;
	const char *
		server; // seed: nginx: text of nginx's server directive; "": made from address and port
};

// Where a backend's ring seed comes from.
enum config_seed {
	CONFIG_SEED_ADDRESS, // canonical text of the address
	CONFIG_SEED_NGINX,   // as nginx seeds: IPv6 in brackets, in its canonical spelling
};

struct config_ring {
	uint32_t version; // enum ring_version
	uint32_t points;  // a weight; v1: always 160
	uint32_t balance; // v3: how far above its share a backend may be, millionths
	enum config_seed seed;
	// Of this ring's own, under which it hashes keys; all zero: not given, the pool keeps what it has, at first the
	// fleet's.
	uint8_t hash_seed[16];
};

struct config_pool {
	const char *name; // unique
	struct config_ring ring;
	struct config_backend *backends;
	uint32_t backend_count;
};

struct config_tunnel {
	uint32_t type; // enum snapshot_tunnel
	uint32_t port; // GUE: destination port
	struct config_prefix
		source4; // outer source; host bits carry entropy. Not set: the port's own address
	struct config_prefix source6;
};

// Idle times in seconds.
struct config_timeouts {
	uint32_t syn_s;
	uint32_t established_s;
	uint32_t closing_s;
	uint32_t udp_s;
};

enum config_service_state {
	CONFIG_STATE_FLOWS, // flow table: a flow keeps its backend
	CONFIG_STATE_NONE,  // the ring alone decides, every packet
};

struct config_service {
	const char *name;             // unique
	struct config_prefix address; // one virtual address (all bits), or a prefix
	uint32_t protocol;            // IPPROTO_TCP or IPPROTO_UDP
	uint32_t *ports;              // none: any port
	uint32_t port_count;
	const char *pool;
	const char **requires; // tags: only backends that have all of them
	uint32_t require_count;
	uint32_t affinity; // enum flow_affinity
	struct config_tunnel tunnel;
	enum config_service_state state;
	struct config_timeouts timeouts;
};

// pools.yaml
struct config_pools {
	struct arena *arena;
	uint32_t unknown;      // enum snapshot_unknown: a packet for no service
	uint8_t hash_seed[16]; // of the whole fleet; all zero: not given, ringwayd makes one
	struct config_pool *pools;
	uint32_t pool_count;
	struct config_service *services;
	uint32_t service_count;
};

enum config_store_type {
	CONFIG_STORE_FILE,
	CONFIG_STORE_ETCD,
};

// Where etcd may be spoken to without TLS.
enum config_plaintext {
	CONFIG_PLAINTEXT_LOOPBACK,
	CONFIG_PLAINTEXT_ANYWHERE,
};

struct config_tls {
	const char *ca; // paths; "" : the system's
	const char *certificate;
	const char *key;
};

struct config_store {
	enum config_store_type type;
	const char *path;       // file: directory
	const char **endpoints; // etcd: URLs
	uint32_t endpoint_count;
	const char *prefix; // etcd: of all keys
	const char *user;   // etcd: "" no authentication
	const char *password_file;
	enum config_plaintext plaintext; // etcd
	struct config_tls tls;
};

// A port of the dataplane.
struct config_link {
	const char *device; // PCI address or vdev
	uint32_t mtu;
	uint32_t vlan;                   // 1..4094; 0: untagged
	struct config_prefix *addresses; // with host bits
	uint32_t address_count;
	struct ip_addr *gateways;
	uint32_t gateway_count;
	const char *punt; // TAP interface for packets for the host; "": none
};

// What a worker does while no packet comes.
enum config_idle {
	CONFIG_IDLE_POLL,
	CONFIG_IDLE_SLEEP, // 50 us at a time
};

struct config_dataplane {
	const char **eal;
	uint32_t eal_count;
	uint32_t main; // CPU of the main lcore
	uint32_t *workers;
	uint32_t worker_count;
	uint32_t flow_entries; // a worker; power of two
	const char *huge_dir;  // hugetlbfs for the flow tables; "" : run_dir
	const char *user;      // that the dataplane becomes once its ports are open; "" : stays
	enum config_idle idle;
	uint32_t services; // capacities of the stats file
	uint32_t pools;
	uint32_t backends;
	struct config_link *ports;
	uint32_t port_count;
};

// Who may talk to ringwayd's socket. Groups by name; "" : none.
struct config_control {
	const char *group; // of the socket; its members may connect
	const char *viewers;
	const char *operators;
	const char *admins;
};

// node.yaml
struct config_node {
	struct arena *arena;
	const char *node;
	const char *datacenter;
	const char *run_dir;
	const char *pools_file; // applied once, when the store is empty; "" : none
	const char *metrics;    // address:port of the exporter; "" : none
	struct config_control control;
	struct config_store store;
	struct config_dataplane dataplane;
};

// Free a model. NULL is allowed.
void config_pools_free(struct config_pools *pools);
void config_node_free(struct config_node *node);

// A deep copy, or NULL when memory is short.
struct config_pools *config_pools_copy(const struct config_pools *pools);

// Gives the parts of a ring that were left out (0) their defaults for its version.
void config_ring_complete(struct config_ring *ring);

// Find by name; NULL when there is none. Cost: linear.
struct config_pool *config_pool_find(const struct config_pools *pools, const char *name);
struct config_service *config_service_find(const struct config_pools *pools, const char *name);
struct config_backend *config_backend_find(const struct config_pool *pool, const char *name);

// Tells whether a backend has all the tags that a service requires.
bool config_backend_eligible(
	const struct config_backend *backend, const struct config_service *service);

// Names of enum values, as they stand in the files.
const char *config_backend_state_name(enum config_backend_state state);
const char *config_ring_version_name(uint32_t version);
const char *config_affinity_name(uint32_t affinity);
const char *config_tunnel_name(uint32_t tunnel);
const char *config_protocol_name(uint32_t protocol);
