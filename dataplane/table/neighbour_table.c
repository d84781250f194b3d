// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/neighbour_table.h"

#include "common/hash.h"

#include <assert.h>
#include <errno.h>

#define MAC_MASK     UINT64_C(0xffffffffffff)
#define STAMP_SHIFT  48
#define STAMP_PERIOD 65535u

// Answers of one second are asked again over this many, so that 2,048 backends do not ask in one burst.
#define STALE_JITTER_S 8u

enum slot_state {
	SLOT_FREE = 0,
	SLOT_USED = 1,
	SLOT_RESTING = 2, // free after the next collect
};

// Read by workers when an answer arrives: address, port, state. The rest is main's.
struct slot {
	struct ip_addr address;
	uint8_t port;
	uint8_t state; // enum slot_state
	bool asked;
	uint8_t unanswered; // questions since the last answer, at most 255
	uint32_t asked_s;
	uint32_t answered_s;
	uint64_t seen; // the word when main last looked
	uint64_t epoch;
};

struct neighbour_table {
	uint32_t slot_count;
	uint32_t index_mask;
	uint64_t slots_offset;
	uint64_t index_offset;
	uint32_t cursor;                               // where main looks for a free slot next
	uint64_t words[] __attribute__((aligned(64))); // one a slot; workers rw
};

static uint64_t line_up(uint64_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static uint32_t index_count(uint32_t slot_count)
{
	uint32_t count = 16;

	while (count < slot_count * 2)
		count *= 2;
	return count;
}

static struct slot *slots_of(const struct neighbour_table *table)
{
	return (struct slot *)((uintptr_t)table + table->slots_offset);
}

// The hash index: slot + 1, 0 for none; main rw, workers ro.
static uint32_t *index_of(const struct neighbour_table *table)
{
	return (uint32_t *)((uintptr_t)table + table->index_offset);
}

uint64_t neighbour_table_footprint(uint32_t slot_count)
{
	assert(slot_count >= 1 && slot_count <= NEIGHBOUR_TABLE_MAX);
	return sizeof(struct neighbour_table) + line_up(slot_count * sizeof(uint64_t)) +
		line_up(slot_count * sizeof(struct slot)) +
		index_count(slot_count) * sizeof(uint32_t);
}

struct neighbour_table *neighbour_table_format(void *memory, uint32_t slot_count)
{
	struct neighbour_table *table = memory;

	assert((uintptr_t)memory % NEIGHBOUR_TABLE_ALIGN == 0);
	memset(memory, 0, neighbour_table_footprint(slot_count));
	table->slot_count = slot_count;
	table->index_mask = index_count(slot_count) - 1;
	table->slots_offset =
		sizeof(struct neighbour_table) + line_up(slot_count * sizeof(uint64_t));
	table->index_offset = table->slots_offset + line_up(slot_count * sizeof(struct slot));
	return table;
}

static uint32_t address_hash(uint8_t port, const struct ip_addr *address)
{
	uint64_t low, high;

	memcpy(&low, address->bytes, sizeof(low));
	memcpy(&high, address->bytes + sizeof(low), sizeof(high));
	return (uint32_t)hash_splitmix64(hash_splitmix64(low + port) ^ high);
}

static bool same_neighbour(const struct slot *slot, uint8_t port, const struct ip_addr *address)
{
	return slot->port == port && slot->address.family == address->family &&
		memcmp(slot->address.bytes, address->bytes, sizeof(address->bytes)) == 0;
}

// The slot of a neighbour, or NEIGHBOUR_NONE. The index is half full at most, so a run ends.
static uint32_t find(
	const struct neighbour_table *table, uint8_t port, const struct ip_addr *address)
{
	const uint32_t *index = index_of(table);
	const struct slot *slots = slots_of(table);
	uint32_t at = address_hash(port, address) & table->index_mask;

	for (uint32_t i = 0; i <= table->index_mask; i++, at = (at + 1) & table->index_mask) {
		// Pairs with the release in link_slot(): who sees the number sees the address.
		uint32_t slot = __atomic_load_n(&index[at], __ATOMIC_ACQUIRE);

		if (slot == 0)
			return NEIGHBOUR_NONE;
		if (same_neighbour(&slots[slot - 1], port, address))
			return slot - 1;
	}
	return NEIGHBOUR_NONE;
}

static void link_slot(struct neighbour_table *table, uint32_t slot)
{
	const struct slot *entry = &slots_of(table)[slot];
	uint32_t *index = index_of(table);
	uint32_t at = address_hash(entry->port, &entry->address) & table->index_mask;

	while (index[at] != 0)
		at = (at + 1) & table->index_mask;
	__atomic_store_n(&index[at], slot + 1, __ATOMIC_RELEASE);
}

static uint32_t free_slot(struct neighbour_table *table)
{
	const struct slot *slots = slots_of(table);

	for (uint32_t i = 0; i < table->slot_count; i++) {
		uint32_t slot = table->cursor;

		table->cursor = slot + 1 == table->slot_count ? 0 : slot + 1;
		if (slots[slot].state == SLOT_FREE)
			return slot;
	}
	return NEIGHBOUR_NONE;
}

int neighbour_table_intern(struct neighbour_table *table, uint8_t port,
	const struct ip_addr *address, uint64_t epoch, uint32_t *ret_slot)
{
	struct slot *slots = slots_of(table);
	uint32_t slot = find(table, port, address);

	if (slot == NEIGHBOUR_NONE) {
		slot = free_slot(table);
		if (slot == NEIGHBOUR_NONE)
			return -ENOSPC;
		slots[slot] = (struct slot){.address = *address, .port = port, .state = SLOT_USED};
		__atomic_store_n(&table->words[slot], 0, __ATOMIC_RELAXED);
		link_slot(table, slot);
	}
	if (slots[slot].epoch < epoch)
		slots[slot].epoch = epoch;
	*ret_slot = slot;
	return 0;
}

uint32_t neighbour_table_collect(struct neighbour_table *table, uint64_t oldest_epoch)
{
	struct slot *slots = slots_of(table);
	uint32_t *index = index_of(table);
	uint32_t freed = 0;

	for (uint32_t i = 0; i < table->slot_count; i++) {
		if (slots[i].state == SLOT_RESTING) {
			slots[i].state = SLOT_FREE;
		} else if (slots[i].state == SLOT_USED && slots[i].epoch < oldest_epoch) {
			slots[i].state = SLOT_RESTING;
			freed++;
		}
	}
	if (freed == 0)
		return 0;
	// Removing from an open-addressed index leaves gaps in other runs; entering all again does not. A worker
	// that looks meanwhile finds nothing, and its answer is asked for once more.
	for (uint32_t i = 0; i <= table->index_mask; i++)
		__atomic_store_n(&index[i], 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < table->slot_count; i++) {
		if (slots[i].state == SLOT_USED)
			link_slot(table, i);
	}
	return freed;
}

const uint64_t *neighbour_table_words(const struct neighbour_table *table)
{
	return table->words;
}

static uint64_t mac_word(const uint8_t mac[static 6])
{
	uint64_t word = 0;

	memcpy(&word, mac, 6);
	return le64toh(word);
}

static uint32_t word_age_s(uint64_t word, uint32_t now_s)
{
	uint32_t stamp_s = (uint32_t)(word >> STAMP_SHIFT) - 1;

	return (now_s % STAMP_PERIOD + STAMP_PERIOD - stamp_s) % STAMP_PERIOD;
}

bool neighbour_table_learn(
	struct neighbour_table *table, const struct neighbour_answer *answer, uint32_t now_s)
{
	uint32_t slot = find(table, answer->port, &answer->address);
	uint64_t word = mac_word(answer->mac) | (uint64_t)(now_s % STAMP_PERIOD + 1) << STAMP_SHIFT;

	if (slot == NEIGHBOUR_NONE)
		return false;
	uint64_t before = neighbour_word(table->words, slot);

	if (before != 0 && ((before ^ word) & MAC_MASK) != 0 && !answer->overrides)
		return true;
	if (before != word)
		__atomic_store_n(&table->words[slot], word, __ATOMIC_RELAXED);
	return true;
}

// Brings main's view of a slot up to what workers stored.
static void look(struct slot *slot, uint64_t word, uint32_t now_s)
{
	if (word == slot->seen)
		return;
	slot->seen = word;
	slot->answered_s = now_s - word_age_s(word, now_s);
	slot->unanswered = 0;
}

static bool is_due(const struct slot *slot, uint32_t number, uint32_t now_s)
{
	uint32_t wait_s;

	if (slot->unanswered == 0) {
		if (slot->seen == 0)
			return true;
		return now_s - slot->answered_s >= NEIGHBOUR_STALE_S + number % STALE_JITTER_S;
	}
	wait_s = slot->unanswered > 5 ? NEIGHBOUR_BACKOFF_MAX_S : 1u << (slot->unanswered - 1);
	return now_s - slot->asked_s >= wait_s;
}

unsigned neighbour_table_due(struct neighbour_table *table, uint32_t now_s,
	struct neighbour_request *ret, unsigned capacity)
{
	struct slot *slots = slots_of(table);
	unsigned count = 0;

	for (uint32_t i = 0; i < table->slot_count && count < capacity; i++) {
		struct slot *slot = &slots[i];

		if (slot->state != SLOT_USED)
			continue;
		look(slot, neighbour_word(table->words, i), now_s);
		if (!is_due(slot, i, now_s))
			continue;
		slot->asked_s = now_s;
		if (slot->unanswered < UINT8_MAX)
			slot->unanswered++;
		ret[count] = (struct neighbour_request){.slot = i,
			.address = slot->address,
			.port = slot->port,
			// Two questions to the known MAC alone, then to all: it may have moved.
			.known = slot->seen != 0 && slot->unanswered <= 2};
		uint64_t mac = htole64(slot->seen);

		memcpy(ret[count++].mac, &mac, sizeof(ret->mac));
	}
	return count;
}

bool neighbour_table_view(const struct neighbour_table *table, uint32_t slot, uint32_t now_s,
	struct neighbour_view *ret)
{
	const struct slot *entry = &slots_of(table)[slot];
	uint64_t word = neighbour_word(table->words, slot);
	uint64_t mac = htole64(word);

	assert(slot < table->slot_count);
	if (entry->state != SLOT_USED)
		return false;
	*ret = (struct neighbour_view){.address = entry->address,
		.port = entry->port,
		.known = word != 0,
		.age_s = word ? word_age_s(word, now_s) : 0,
		.unanswered = word == entry->seen ? entry->unanswered : 0};
	memcpy(ret->mac, &mac, sizeof(ret->mac));
	return true;
}
