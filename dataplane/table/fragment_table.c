// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table/fragment_table.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define WAYS  4u
#define LINES (FRAGMENT_TABLE_ENTRIES / WAYS)

// choice: used 1 bit | stamp 28 | uses_new 1 | service 14 | backend 20. 28 bits of seconds are eight years.
#define CHOICE_USED   (UINT64_C(1) << 63)
#define STAMP_SHIFT   35
#define STAMP_MASK    UINT32_C(0xfffffff)
#define NEW_SHIFT     34
#define SERVICE_SHIFT 20
#define SERVICE_MASK  UINT32_C(0x3fff)
#define BACKEND_MASK  UINT32_C(0xfffff)

struct entry {
	uint64_t choice;
	uint64_t check; // hash ^ choice
};

struct fragment_table {
	struct entry lines[LINES][WAYS];
};

_Static_assert(sizeof(struct entry) * WAYS == 64, "a line");

uint64_t fragment_table_footprint(void)
{
	return sizeof(struct fragment_table);
}

struct fragment_table *fragment_table_format(void *memory)
{
	assert((uintptr_t)memory % FRAGMENT_TABLE_ALIGN == 0);
	memset(memory, 0, sizeof(struct fragment_table));
	return memory;
}

static uint32_t stamp_of(uint64_t choice)
{
	return (uint32_t)(choice >> STAMP_SHIFT) & STAMP_MASK;
}

static uint32_t age_s(uint64_t choice, uint32_t now_s)
{
	return (now_s - stamp_of(choice)) & STAMP_MASK;
}

void fragment_table_store(struct fragment_table *table, uint64_t hash,
	const struct fragment_choice *choice, uint32_t now_s)
{
	struct entry *line = table->lines[hash % LINES], *place = &line[0];
	uint64_t word = CHOICE_USED | (uint64_t)(now_s & STAMP_MASK) << STAMP_SHIFT |
		(uint64_t)choice->uses_new << NEW_SHIFT |
		(uint64_t)(choice->service & SERVICE_MASK) << SERVICE_SHIFT |
		(choice->backend & BACKEND_MASK);

	for (unsigned i = 0; i < WAYS; i++) {
		if (line[i].choice == 0 || (line[i].choice ^ line[i].check) == hash) {
			place = &line[i];
			break;
		}
		if (age_s(line[i].choice, now_s) > age_s(place->choice, now_s))
			place = &line[i];
	}
	// In any order: a reader between the two stores computes another hash.
	__atomic_store_n(&place->choice, word, __ATOMIC_RELAXED);
	__atomic_store_n(&place->check, word ^ hash, __ATOMIC_RELAXED);
}

bool fragment_table_find(const struct fragment_table *table, uint64_t hash, uint32_t now_s,
	struct fragment_choice *ret)
{
	const struct entry *line = table->lines[hash % LINES];

	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t choice = __atomic_load_n(&line[i].choice, __ATOMIC_RELAXED);
		uint64_t check = __atomic_load_n(&line[i].check, __ATOMIC_RELAXED);

		if (choice == 0 || (choice ^ check) != hash)
			continue;
		if (age_s(choice, now_s) > FRAGMENT_TABLE_IDLE_S)
			return false;
		ret->backend = (uint32_t)choice & BACKEND_MASK;
		ret->service = (uint32_t)(choice >> SERVICE_SHIFT) & SERVICE_MASK;
		ret->uses_new = (choice >> NEW_SHIFT) & 1;
		return true;
	}
	return false;
}
