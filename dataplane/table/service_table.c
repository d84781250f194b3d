// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/service_table.h"

#include <assert.h>

#define LENGTHS_MAX 129u

// What a slot holds. The address of every binding is entered a second time, without protocol and port, so that "is
// this one of ours" is one look-up.
enum slot_kind {
	SLOT_BINDING = 1,
	SLOT_ADDRESS = 2,
};

struct slot {
	uint64_t address[2]; // network byte order, host bits zero
	uint64_t rest;       // pack_rest(); 0: free
	uint32_t service;
	uint32_t reserved;
};

_Static_assert(sizeof(struct slot) == 32, "two a line");

// Prefix lengths shorter than an address, the longest first.
struct lengths {
	uint32_t count;
	uint8_t bits[LENGTHS_MAX];
};

struct service_table {
	uint32_t slot_mask;
	bool has_any_port;
	struct lengths lengths4;
	struct lengths lengths6;
	struct slot slots[] __attribute__((aligned(64)));
};

static unsigned address_bits(uint8_t family)
{
	return family == ADDR_V4 ? 32 : 128;
}

// Twice the entries, and an entry more for each binding's address: at most half full.
static uint32_t slot_count(uint32_t binding_count)
{
	uint32_t count = 16;

	while (count < binding_count * 4)
		count *= 2;
	return count;
}

uint64_t service_table_footprint(uint32_t binding_count)
{
	assert(binding_count <= SNAPSHOT_BINDINGS_MAX);
	return sizeof(struct service_table) + slot_count(binding_count) * sizeof(struct slot);
}

// The part of a slot that a look-up compares.
struct slot_key {
	uint64_t address[2];
	uint64_t rest;
};

// Protocol, port, family and prefix length in one word. Never 0: kind is not.
static uint64_t pack_rest(
	uint16_t port_be, uint8_t protocol, uint8_t family, unsigned bits, enum slot_kind kind)
{
	return port_be | (uint64_t)protocol << 16 | (uint64_t)family << 24 | (uint64_t)bits << 32 |
		(uint64_t)kind << 40;
}

// Not keyed: what stands in the table is the operator's, and a stranger's question costs one run of at most half
// full slots whatever it is.
static uint32_t slot_hash(const struct slot_key *key)
{
	uint64_t hash = hash_fold64(key->address[0] ^ UINT64_C(0xa0761d6478bd642f),
		key->rest ^ UINT64_C(0xe7037ed1a0b428db));

	return (uint32_t)hash_fold64(
		hash ^ key->address[1], UINT64_C(0x8ebc6af09c88c6e3) ^ key->address[1] << 1);
}

static const struct slot *find_slot(const struct service_table *table, const struct slot_key *key)
{
	for (uint32_t i = slot_hash(key) & table->slot_mask;; i = (i + 1) & table->slot_mask) {
		const struct slot *slot = &table->slots[i];

		if (slot->rest == 0)
			return NULL;
		if (slot->address[0] == key->address[0] && slot->address[1] == key->address[1] &&
			slot->rest == key->rest)
			return slot;
	}
}

static void insert(struct service_table *table, const struct slot_key *key, uint32_t service)
{
	uint32_t i = slot_hash(key) & table->slot_mask;

	if (find_slot(table, key) != NULL)
		return;
	while (table->slots[i].rest != 0)
		i = (i + 1) & table->slot_mask;
	table->slots[i] = (struct slot){.address = {key->address[0], key->address[1]},
		.rest = key->rest,
		.service = service};
}

static void add_length(struct lengths *lengths, uint8_t bits)
{
	uint32_t at = 0;

	while (at < lengths->count && lengths->bits[at] > bits)
		at++;
	if (at < lengths->count && lengths->bits[at] == bits)
		return;
	memmove(lengths->bits + at + 1, lengths->bits + at, lengths->count - at);
	lengths->bits[at] = bits;
	lengths->count++;
}

static void add_binding(struct service_table *table, const struct snapshot_binding *binding)
{
	uint8_t family = binding->address.family;
	struct slot_key key;

	memcpy(key.address, binding->address.bytes, sizeof(key.address));
	key.rest = pack_rest(
		binding->port_be, binding->protocol, family, binding->prefix_bits, SLOT_BINDING);
	insert(table, &key, binding->service);
	key.rest = pack_rest(0, 0, family, binding->prefix_bits, SLOT_ADDRESS);
	insert(table, &key, SERVICE_NONE);
	table->has_any_port |= binding->port_be == 0;
	if (binding->prefix_bits < address_bits(family))
		add_length(family == ADDR_V4 ? &table->lengths4 : &table->lengths6,
			binding->prefix_bits);
}

struct service_table *service_table_format(
	void *memory, const struct snapshot_binding *bindings, uint32_t count)
{
	struct service_table *table = memory;

	assert((uintptr_t)memory % SERVICE_TABLE_ALIGN == 0);
	memset(memory, 0, service_table_footprint(count));
	table->slot_mask = slot_count(count) - 1;
	for (uint32_t i = 0; i < count; i++)
		add_binding(table, &bindings[i]);
	return table;
}

// Clears the bits behind a prefix.
static void mask_address(uint64_t address[2], unsigned bits)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned kept = bits > 64 * i ? bits - 64 * i : 0;

		if (kept == 0)
			address[i] = 0;
		else if (kept < 64)
			address[i] &= htobe64(~UINT64_C(0) << (64 - kept));
	}
}

// The service of one address or prefix: with the port, then with any port.
static uint32_t find_at(const struct service_table *table, const uint64_t address[2], unsigned bits,
	const struct flow_key *key)
{
	struct slot_key wanted = {{address[0], address[1]},
		pack_rest(
			key->destination_port_be, key->protocol, key->family, bits, SLOT_BINDING)};
	const struct slot *slot = find_slot(table, &wanted);

	if (slot == NULL && table->has_any_port) {
		wanted.rest = pack_rest(0, key->protocol, key->family, bits, SLOT_BINDING);
		slot = find_slot(table, &wanted);
	}
	return slot ? slot->service : SERVICE_NONE;
}

static const struct lengths *lengths_of(const struct service_table *table, uint8_t family)
{
	return family == ADDR_V4 ? &table->lengths4 : &table->lengths6;
}

uint32_t service_table_find(const struct service_table *table, const struct flow_key *key)
{
	const struct lengths *lengths = lengths_of(table, key->family);
	uint64_t address[2];
	uint32_t service;

	memcpy(address, key->destination, sizeof(address));
	service = find_at(table, address, address_bits(key->family), key);
	for (uint32_t i = 0; i < lengths->count && service == SERVICE_NONE; i++) {
		mask_address(address, lengths->bits[i]);
		service = find_at(table, address, lengths->bits[i], key);
	}
	return service;
}

// Tells whether two keys ask the same question. Packets of a burst often do: one service takes most of the
// traffic, and three compares cost a quarter of a look-up.
static bool same_destination(const struct flow_key *a, const struct flow_key *b)
{
	return flow_word(a->destination) == flow_word(b->destination) &&
		flow_word(a->destination + 8) == flow_word(b->destination + 8) &&
		a->destination_port_be == b->destination_port_be && a->protocol == b->protocol &&
		a->family == b->family;
}

static void prefetch(const struct service_table *table, const struct flow_key *key)
{
	struct slot_key wanted;

	memcpy(wanted.address, key->destination, sizeof(wanted.address));
	wanted.rest = pack_rest(key->destination_port_be, key->protocol, key->family,
		address_bits(key->family), SLOT_BINDING);
	__builtin_prefetch(&table->slots[slot_hash(&wanted) & table->slot_mask], 0, 3);
}

void service_table_find_burst(const struct service_table *table, const struct flow_key *const *keys,
	unsigned count, uint32_t *ret_services)
{
	uint32_t asked = 0; // bit i: key i asks something else than key i - 1

	for (unsigned i = 0; i < count; i++) {
		if (i > 0 && same_destination(keys[i], keys[i - 1]))
			continue;
		asked |= UINT32_C(1) << i;
		prefetch(table, keys[i]);
	}
	for (unsigned i = 0; i < count; i++)
		ret_services[i] =
			asked >> i & 1 ? service_table_find(table, keys[i]) : ret_services[i - 1];
}

bool service_table_has_address(
	const struct service_table *table, const uint8_t address[static 16], uint8_t family)
{
	const struct lengths *lengths = lengths_of(table, family);
	struct slot_key wanted = {
		.rest = pack_rest(0, 0, family, address_bits(family), SLOT_ADDRESS)};

	memcpy(wanted.address, address, sizeof(wanted.address));
	if (find_slot(table, &wanted) != NULL)
		return true;
	for (uint32_t i = 0; i < lengths->count; i++) {
		mask_address(wanted.address, lengths->bits[i]);
		wanted.rest = pack_rest(0, 0, family, lengths->bits[i], SLOT_ADDRESS);
		if (find_slot(table, &wanted) != NULL)
			return true;
	}
	return false;
}
