// SPDX-License-Identifier: Apache-2.0
#include "control/ring/arcs.h"

#include "control/ring/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool sort_candidates(struct arcs *arcs, const uint32_t *candidates)
{
	uint64_t *keys = malloc(2 * sizeof(*keys) * arcs->candidate_count);

	if (keys == NULL)
		return false;
	for (uint32_t i = 0; i < arcs->candidate_count; i++)
		keys[i] = (uint64_t)candidates[i] << 32 | i;
	sort_u64(keys, keys + arcs->candidate_count, arcs->candidate_count);
	for (uint32_t i = 0; i < arcs->candidate_count; i++) {
		uint32_t index = (uint32_t)keys[i];

		arcs->hash[i] = (uint32_t)(keys[i] >> 32);
		arcs->owner[i] = (uint16_t)(index / ARCS_SLOTS);
		arcs->place[index] = i;
	}
	free(keys);
	return true;
}

static void apply_masks(struct arcs *arcs, const uint64_t *masks)
{
	for (uint32_t i = 0; i < arcs->candidate_count; i++) {
		if (!(masks[i / ARCS_SLOTS] >> (i % ARCS_SLOTS) & 1))
			continue;
		arcs->chosen[arcs->place[i] / 64] |= UINT64_C(1) << (arcs->place[i] % 64);
		arcs->chosen_count++;
	}
	if (arcs->chosen_count == 0)
		return;
	for (uint32_t i = 0; i < arcs->candidate_count; i++) {
		if (arcs_is_chosen(arcs, i))
			arcs->share[arcs->owner[i]] += arcs_length(arcs, i);
	}
}

int arcs_create(
	const uint32_t *candidates, const uint64_t *masks, uint32_t member_count, struct arcs **ret)
{
	struct arcs *arcs = calloc(1, sizeof(*arcs));
	int rc = -ENOMEM;

	if (arcs == NULL)
		return rc;
	arcs->member_count = member_count;
	arcs->candidate_count = member_count * ARCS_SLOTS;
	arcs->hash = malloc(sizeof(*arcs->hash) * arcs->candidate_count);
	arcs->owner = malloc(sizeof(*arcs->owner) * arcs->candidate_count);
	arcs->place = malloc(sizeof(*arcs->place) * arcs->candidate_count);
	arcs->chosen = calloc(member_count, sizeof(*arcs->chosen)); // ARCS_SLOTS bits a member
	arcs->share = calloc(member_count, sizeof(*arcs->share));
	if (arcs->hash == NULL || arcs->owner == NULL || arcs->place == NULL ||
		arcs->chosen == NULL || arcs->share == NULL)
		goto err_free;
	if (!sort_candidates(arcs, candidates))
		goto err_free;
	apply_masks(arcs, masks);
	rc = -EINVAL;
	if (arcs->chosen_count == 0)
		goto err_free;
	*ret = arcs;
	return 0;

err_free:
	arcs_destroy(arcs);
	return rc;
}

void arcs_destroy(struct arcs *arcs)
{
	if (arcs == NULL)
		return;
	free(arcs->hash);
	free(arcs->owner);
	free(arcs->place);
	free(arcs->chosen);
	free(arcs->share);
	free(arcs);
}

uint32_t arcs_before(const struct arcs *arcs, uint32_t position)
{
	uint32_t word = position / 64;
	uint64_t bits = arcs->chosen[word] & ((UINT64_C(1) << (position % 64)) - 1);

	while (bits == 0) {
		word = (word == 0 ? arcs->member_count : word) - 1;
		bits = arcs->chosen[word];
	}
	return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
}

uint32_t arcs_after(const struct arcs *arcs, uint32_t position)
{
	uint32_t word = position / 64;
	uint64_t bits = arcs->chosen[word] & ~(UINT64_MAX >> (63 - position % 64));

	while (bits == 0) {
		word = word + 1 == arcs->member_count ? 0 : word + 1;
		bits = arcs->chosen[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

int64_t arcs_length(const struct arcs *arcs, uint32_t position)
{
	uint32_t before = arcs_before(arcs, position);
	uint32_t places = arcs->hash[position] - arcs->hash[before];

	// Around the circle to the same place again: all of it.
	return before >= position && places == 0 ? ARCS_CIRCLE : places;
}

void arcs_choose(struct arcs *arcs, uint32_t position)
{
	int64_t places = arcs_length(arcs, position);

	arcs->share[arcs->owner[arcs_after(arcs, position)]] -= places;
	arcs->share[arcs->owner[position]] += places;
	arcs->chosen[position / 64] |= UINT64_C(1) << (position % 64);
	arcs->chosen_count++;
}

void arcs_drop(struct arcs *arcs, uint32_t position)
{
	int64_t places = arcs_length(arcs, position);

	arcs->chosen[position / 64] &= ~(UINT64_C(1) << (position % 64));
	arcs->chosen_count--;
	arcs->share[arcs->owner[position]] -= places;
	arcs->share[arcs->owner[arcs_after(arcs, position)]] += places;
}

uint64_t arcs_mask(const struct arcs *arcs, uint32_t member)
{
	uint64_t mask = 0;

	for (uint32_t slot = 0; slot < ARCS_SLOTS; slot++) {
		if (arcs_is_chosen(arcs, arcs->place[member * ARCS_SLOTS + slot]))
			mask |= UINT64_C(1) << slot;
	}
	return mask;
}

uint32_t arcs_find(const struct arcs *arcs, uint32_t hash)
{
	uint32_t low = 0, high = arcs->candidate_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (arcs->hash[middle] < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low == arcs->candidate_count ? 0 : low;
}
