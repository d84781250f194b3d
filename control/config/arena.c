// SPDX-License-Identifier: Apache-2.0
#include "control/config/arena.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES 16384u
#define ARENA_ALIGN       16u

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	_Alignas(ARENA_ALIGN) unsigned char bytes[];
};

struct arena {
	struct arena_block *blocks; // the first one has the free room
};

static struct arena_block *block_create(size_t size, struct arena_block *next)
{
	// The bytes come zeroed, so no piece needs clearing.
	struct arena_block *block = calloc(1, sizeof(*block) + size);

	if (block != NULL) {
		block->size = size;
		block->next = next;
	}
	return block;
}

struct arena *arena_create(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	return arena;
}

void arena_free(struct arena *arena)
{
	if (arena == NULL)
		return;
	while (arena->blocks != NULL) {
		struct arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	free(arena);
}

void *arena_take(struct arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	size_t wanted = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	void *piece;

	if (wanted < size)
		return NULL;
	if (block == NULL || block->size - block->used < wanted) {
		size_t room = wanted > ARENA_BLOCK_BYTES / 4 ? wanted : ARENA_BLOCK_BYTES;

		block = block_create(room, arena->blocks);
		if (block == NULL)
			return NULL;
		arena->blocks = block;
	}
	piece = block->bytes + block->used;
	block->used += wanted;
	return piece;
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_take(arena, length + 1);

	if (copy != NULL)
		memcpy(copy, text, length);
	return copy;
}

void *arena_append(struct arena *arena, void *items, uint32_t *count, size_t item_size)
{
	unsigned char *array;

	memcpy(&array, items, sizeof(array));
	// A count that is zero or a power of two is a full array: room is doubled exactly there.
	if ((*count & (*count - 1)) == 0) {
		size_t room = *count == 0 ? 1 : (size_t)*count * 2;
		unsigned char *larger = arena_take(arena, room * item_size);

		if (larger == NULL)
			return NULL;
		if (*count > 0)
			memcpy(larger, array, (size_t)*count * item_size);
		memcpy(items, &larger, sizeof(larger));
		array = larger;
	}
	return array + (size_t)(*count)++ * item_size;
}
