// SPDX-License-Identifier: Apache-2.0
// Memory of one configuration: many small pieces, freed together.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;

// Makes an empty arena, or returns NULL when memory is short.
struct arena *arena_create(void);

// Frees the arena and every piece of it. NULL is allowed.
void arena_free(struct arena *arena);

// Takes size zeroed bytes, aligned for any type. Returns NULL when memory is short.
void *arena_take(struct arena *arena, size_t size);

// Copies length bytes of text and a NUL. Returns NULL when memory is short.
char *arena_text(struct arena *arena, const char *text, size_t length);

// Adds one zeroed item of item_size bytes to an array whose pointer and count the caller holds; both are updated.
// items: address of the array's pointer. The array grows by doubling, so items may move.
// Returns the new item, or NULL when memory is short (the array is as before).
void *arena_append(struct arena *arena, void *items, uint32_t *count, size_t item_size);
