// SPDX-License-Identifier: Apache-2.0
#include "control/config/check.h"

#include "control/config/pool_ring.h"
#include "control/config/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 160u

// A thing that must be unique, and where it stands.
struct entry {
	const char *name;
	struct ip_addr address;
	uint32_t detail; // port of a backend; bits, protocol and port of a binding
	uint32_t index;
	uint32_t item; // position in the list of index
};

struct entries {
	struct entry *items;
	uint32_t count;
};

static struct entries entries_create(size_t room)
{
	struct entries entries = {.items = calloc(room + 1, sizeof(struct entry))};

	return entries;
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order == 0)
		order = addr_compare(&x->address, &y->address);
	if (order == 0)
		order = (x->detail > y->detail) - (x->detail < y->detail);
	return order;
}

// The later one of equal entries is the one to report.
static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = entry_compare(a, b);

	if (order == 0)
		order = (x->index > y->index) - (x->index < y->index);
	if (order == 0)
		order = (x->item > y->item) - (x->item < y->item);
	return order;
}

static void entries_sort(struct entries *entries)
{
	qsort(entries->items, entries->count, sizeof(struct entry), entry_order);
}

static bool equals_last(const struct entries *entries, uint32_t i)
{
	return i > 0 && entry_compare(&entries->items[i - 1], &entries->items[i]) == 0;
}

// Names of a list, gathered by a caller that knows where they are.
static void names_check(struct entries *names, struct config_report *report, const char *list)
{
	entries_sort(names);
	for (uint32_t i = 1; i < names->count; i++) {
		char path[PATH_BYTES];

		if (!equals_last(names, i))
			continue;
		snprintf(path, sizeof(path), "%.120s[%u].name", list, names->items[i].index);
		config_report_add(report, CONFIG_DUPLICATE_NAME, path, NULL,
			"\"%s\" is taken by %s[%u]", names->items[i].name, list,
			names->items[i - 1].index);
	}
}

static void name_add(struct entries *names, const char *name, uint32_t index)
{
	if (name[0] != '\0')
		names->items[names->count++] = (struct entry){.name = name, .index = index};
}

static void addresses_check(const struct config_pool *pool, struct entries *addresses,
	struct config_report *report, const char *list)
{
	entries_sort(addresses);
	for (uint32_t i = 1; i < addresses->count; i++) {
		const struct config_backend *first = &pool->backends[addresses->items[i - 1].index];
		char path[PATH_BYTES];

		if (!equals_last(addresses, i))
			continue;
		snprintf(path, sizeof(path), "%.120s[%u].address", list, addresses->items[i].index);
		config_report_add(report, CONFIG_DUPLICATE_ADDRESS, path,
			"give one of them another port, or one backend the sum of the weights",
			"address and port are those of \"%s\"", first->name);
	}
}

static int backends_check(
	const struct config_pool *pool, struct config_report *report, const char *list)
{
	struct entries names = entries_create(pool->backend_count);
	struct entries addresses = entries_create(pool->backend_count);
	int rc = -ENOMEM;

	if (names.items == NULL || addresses.items == NULL)
		goto out;
	for (uint32_t i = 0; i < pool->backend_count; i++) {
		const struct config_backend *b = &pool->backends[i];

		name_add(&names, b->name, i);
		if (b->address.family != ADDR_NONE)
			addresses.items[addresses.count++] = (struct entry){
				.name = "", .address = b->address, .detail = b->port, .index = i};
	}
	names_check(&names, report, list);
	addresses_check(pool, &addresses, report, list);
	rc = 0;
out:
	free(names.items);
	free(addresses.items);
	return rc;
}

void config_ring_check(const struct config_ring *ring, struct config_report *report, const char *at)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%.120s.points", at);
	if (ring->version == RING_V1 && ring->points != CONFIG_V1_POINTS)
		config_report_add(report, CONFIG_CONFLICT, path, "use v2 for another number",
			"v1 has 160 points for each unit of weight, always");
	snprintf(path, sizeof(path), "%.120s.balance", at);
	if (ring->version != RING_V3 && ring->balance != 0)
		config_report_add(report, CONFIG_CONFLICT, path, NULL, "only v3 has a balance");
}

// The rules that only the ring knows: twins, too many points, a seed that is too long.
static int ring_rules_check(
	const struct config_pool *pool, struct config_report *report, const char *at)
{
	struct ring_error error;
	struct pool_ring ring;
	int rc = pool_ring_spec(pool, &pool->ring, NULL, 0, &ring, &error);

	if (rc == 0)
		pool_ring_free(&ring);
	if (rc == -EINVAL || rc == -E2BIG) {
		config_report_add(report, CONFIG_RING, at, NULL, "%s", error.text);
		rc = 0;
	}
	return rc;
}

// nginx's text seeds only the rings that are seeded as nginx does it.
static void servers_check(
	const struct config_pool *pool, struct config_report *report, const char *list)
{
	for (uint32_t i = 0; i < pool->backend_count; i++) {
		char path[PATH_BYTES];

		if (pool->ring.seed == CONFIG_SEED_NGINX || pool->backends[i].server[0] == '\0')
			continue;
		snprintf(path, sizeof(path), "%.120s[%u].server", list, i);
		config_report_add(report, CONFIG_CONFLICT, path,
			"write `seed: nginx` into the ring",
			"only a ring with `seed: nginx` is seeded from this text");
	}
}

static int pools_list_check(const struct config_pools *pools, struct config_report *report)
{
	struct entries names = entries_create(pools->pool_count);
	uint32_t errors_before = report->error_count;
	uint64_t backends = 0;
	int rc = 0;

	if (names.items == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < pools->pool_count && rc == 0; i++) {
		const struct config_pool *pool = &pools->pools[i];
		uint32_t errors = report->error_count;
		char path[PATH_BYTES];

		name_add(&names, pool->name, i);
		snprintf(path, sizeof(path), "pools[%u].ring", i);
		if (pool->ring.version != 0)
			config_ring_check(&pool->ring, report, path);
		snprintf(path, sizeof(path), "pools[%u].backends", i);
		rc = backends_check(pool, report, path);
		servers_check(pool, report, path);
		// Said once: what is wrong with a backend already would be refused by the ring again.
		if (rc == 0 && errors_before == 0 && report->error_count == errors)
			rc = ring_rules_check(pool, report, path);
		backends += pool->backend_count;
	}
	names_check(&names, report, "pools");
	free(names.items);
	if (backends > SNAPSHOT_BACKENDS_MAX)
		config_report_add(report, CONFIG_LIMIT, "pools", NULL,
			"%llu backends in all; at most %u are taken", (unsigned long long)backends,
			SNAPSHOT_BACKENDS_MAX);
	return rc;
}

static void binding_report(
	const struct config_pools *pools, const struct entry *pair, struct config_report *report)
{
	const struct config_service *mine = &pools->services[pair[1].index];
	const struct config_service *other = &pools->services[pair[0].index];
	char path[PATH_BYTES];

	if (mine->port_count > 0)
		snprintf(path, sizeof(path), "services[%u].ports[%u]", pair[1].index, pair[1].item);
	else
		snprintf(path, sizeof(path), "services[%u].address", pair[1].index);
	if (mine == other)
		config_report_add(report, CONFIG_DUPLICATE_NAME, path, NULL, "is given twice");
	else
		config_report_add(report, CONFIG_SAME_TRAFFIC, path, NULL,
			"service \"%s\" has the same address, protocol and port already",
			other->name);
}

static void binding_add(
	struct entries *bindings, const struct config_service *s, uint32_t index, uint32_t item)
{
	uint32_t port = s->port_count > 0 ? s->ports[item] : 0;

	// Unlike bits, protocol or port make an unlike binding: all three in one number.
	bindings->items[bindings->count++] = (struct entry){.name = "",
		.address = s->address.address,
		.detail = s->address.bits << 24 | (s->protocol & 0xff) << 16 | port,
		.index = index,
		.item = item};
}

static int bindings_check(const struct config_pools *pools, struct config_report *report)
{
	struct entries bindings;
	uint64_t count = 0;

	for (uint32_t i = 0; i < pools->service_count; i++)
		count += pools->services[i].port_count > 0 ? pools->services[i].port_count : 1;
	if (count > SNAPSHOT_BINDINGS_MAX) {
		config_report_add(report, CONFIG_LIMIT, "services",
			"a service without `ports` takes all ports with one entry",
			"%llu ports of services in all; at most %u are taken",
			(unsigned long long)count, SNAPSHOT_BINDINGS_MAX);
		return 0;
	}
	bindings = entries_create(count);
	if (bindings.items == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < pools->service_count; i++) {
		const struct config_service *s = &pools->services[i];

		if (s->address.address.family == ADDR_NONE || s->protocol == 0)
			continue;
		binding_add(&bindings, s, i, 0);
		for (uint32_t port = 1; port < s->port_count; port++)
			binding_add(&bindings, s, i, port);
	}
	entries_sort(&bindings);
	for (uint32_t i = 1; i < bindings.count; i++) {
		if (equals_last(&bindings, i))
			binding_report(pools, &bindings.items[i - 1], report);
	}
	free(bindings.items);
	return 0;
}

static void tunnel_check(
	const struct config_tunnel *tunnel, uint32_t index, struct config_report *report)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "services[%u].tunnel.source4", index);
	if (tunnel->source4.address.family == ADDR_V6)
		config_report_add(report, CONFIG_BAD_VALUE, path, "put it into `source6`",
			"is an IPv6 prefix");
	snprintf(path, sizeof(path), "services[%u].tunnel.source6", index);
	if (tunnel->source6.address.family == ADDR_V4)
		config_report_add(report, CONFIG_BAD_VALUE, path, "put it into `source4`",
			"is an IPv4 prefix");
}

static uint32_t eligible_count(const struct config_pool *pool, const struct config_service *service)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pool->backend_count; i++)
		count += config_backend_eligible(&pool->backends[i], service);
	return count;
}

static void service_check(
	const struct config_pools *pools, uint32_t index, struct config_report *report)
{
	const struct config_service *service = &pools->services[index];
	const struct config_pool *pool = config_pool_find(pools, service->pool);
	char path[PATH_BYTES];

	tunnel_check(&service->tunnel, index, report);
	if (service->pool[0] == '\0')
		return;
	snprintf(path, sizeof(path), "services[%u].pool", index);
	if (pool == NULL) {
		config_report_add(report, CONFIG_UNKNOWN_NAME, path, NULL,
			"there is no pool \"%s\"", service->pool);
		return;
	}
	if (service->require_count > 0 && eligible_count(pool, service) == 0) {
		snprintf(path, sizeof(path), "services[%u].requires", index);
		config_report_warn(report, CONFIG_NO_BACKEND, path,
			"packets of this service will be dropped as `ring_empty`",
			"no backend of pool \"%s\" has all these tags", pool->name);
	} else if (pool->backend_count == 0) {
		config_report_warn(report, CONFIG_NO_BACKEND, path,
			"packets of this service will be dropped as `ring_empty`",
			"pool \"%s\" has no backends", pool->name);
	}
}

static int services_check(const struct config_pools *pools, struct config_report *report)
{
	struct entries names = entries_create(pools->service_count);

	if (names.items == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < pools->service_count; i++) {
		name_add(&names, pools->services[i].name, i);
		service_check(pools, i, report);
	}
	names_check(&names, report, "services");
	free(names.items);
	return bindings_check(pools, report);
}

int config_pools_check(const struct config_pools *pools, struct config_report *report)
{
	int rc = pools_list_check(pools, report);

	if (rc == 0)
		rc = services_check(pools, report);
	if (rc == 0 && report->error_count > 0)
		rc = -EINVAL;
	return rc;
}
