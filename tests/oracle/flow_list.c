// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/flow_list.h"

#include <stdlib.h>

struct flow_list *flow_list_make(uint64_t bucket_count, uint64_t now_s)
{
	struct flow_list *list = malloc(sizeof(*list));

	list->bucket_count = bucket_count;
	list->now_s = now_s;
	list->items = calloc(bucket_count * FLOW_TABLE_WAYS, sizeof(*list->items));
	return list;
}

void flow_list_free(struct flow_list *list)
{
	free(list->items);
	free(list);
}

// The bucket of a flow (0) and the one beside it (1).
static struct flow_list_item *bucket_of(const struct flow_list *list, uint64_t hash, int away)
{
	uint64_t bucket = hash % list->bucket_count;

	if (away)
		bucket = bucket % 2 == 0 ? bucket + 1 : bucket - 1;
	return list->items + bucket * FLOW_TABLE_WAYS;
}

static uint32_t tag_of(uint64_t hash)
{
	uint32_t tag = (hash >> 28) % (1u << 26);

	return tag ? tag : 1;
}

static bool is_live(const struct flow_list *list, const struct flow_list_item *item)
{
	return item->used && item->deadline_s > list->now_s;
}

static struct flow_list_item *present_in(struct flow_list_item *bucket, uint32_t tag)
{
	for (int i = 0; i < 8; i++) {
		if (bucket[i].used && bucket[i].tag == tag)
			return &bucket[i];
	}
	return NULL;
}

static struct flow_list_item *present(const struct flow_list *list, uint64_t hash)
{
	struct flow_list_item *item = present_in(bucket_of(list, hash, 0), tag_of(hash));

	return item ? item : present_in(bucket_of(list, hash, 1), tag_of(hash));
}

struct flow_list_item *flow_list_find(struct flow_list *list, uint64_t hash)
{
	struct flow_list_item *item = present(list, hash);

	return item && is_live(list, item) ? item : NULL;
}

static bool is_syn_only(enum flow_state state)
{
	return state == FLOW_STATE_SYN || state == FLOW_STATE_SYN_WAITING ||
		state == FLOW_STATE_SYN_ABORTED;
}

static bool is_udp(enum flow_state state)
{
	return state == FLOW_STATE_UDP || state == FLOW_STATE_UDP_ONCE;
}

static uint64_t idle_s(enum flow_state state, const struct flow_idle *idle)
{
	if (is_syn_only(state))
		return idle->syn_s;
	if (is_udp(state))
		return idle->udp_s;
	if (state == FLOW_STATE_CLOSING)
		return idle->closing_s;
	return idle->established_s;
}

static uint64_t granule(uint64_t idle)
{
	return idle / 32 > 1 ? idle / 32 : 1;
}

static enum flow_state after_data(enum flow_state state)
{
	if (state == FLOW_STATE_SYN || state == FLOW_STATE_SYN_WAITING)
		return FLOW_STATE_FIRST;
	if (state == FLOW_STATE_FIRST)
		return FLOW_STATE_SECOND;
	return state == FLOW_STATE_CLOSING ? FLOW_STATE_CLOSING : FLOW_STATE_ESTABLISHED;
}

bool flow_list_advance(struct flow_list *list, struct flow_list_item *item, enum flow_event event,
	const struct flow_idle *idle)
{
	enum flow_state was = item->state;
	bool fresh_syn = was == FLOW_STATE_SYN || was == FLOW_STATE_SYN_WAITING;
	bool abort = false;

	if (is_udp(was)) {
		if (event == FLOW_EVENT_UDP)
			item->state = FLOW_STATE_UDP;
	} else if (event == FLOW_EVENT_SYN && was == FLOW_STATE_CLOSING) {
		item->state = FLOW_STATE_SYN;
	} else if (event == FLOW_EVENT_SYN && fresh_syn) {
		item->state = FLOW_STATE_SYN_ABORTED;
		abort = true;
	} else if (event == FLOW_EVENT_DATA) {
		item->state = after_data(was);
	} else if (event == FLOW_EVENT_FIN || event == FLOW_EVENT_RST) {
		item->state = FLOW_STATE_CLOSING;
		abort = event == FLOW_EVENT_RST &&
			(fresh_syn || was == FLOW_STATE_FIRST || was == FLOW_STATE_SECOND);
	}
	uint64_t idle_now = idle_s(item->state, idle);
	uint64_t left = item->deadline_s - list->now_s;

	if (item->state != was || left <= idle_now || left > idle_now + granule(idle_now))
		item->deadline_s = list->now_s + idle_now + granule(idle_now);
	return abort;
}

// 0: a SYN may take its place; 1: a TCP packet or UDP may; 2: those may, when half of their own time is more.
static int rank(enum flow_state state)
{
	if (is_syn_only(state) || state == FLOW_STATE_UDP_ONCE)
		return 0;
	return state == FLOW_STATE_MIDWAY ? 1 : 2;
}

// The flow of a rank that is nearest to its deadline, in both buckets.
static struct flow_list_item *victim(
	struct flow_list *list, uint64_t hash, int of_rank, uint64_t below_s)
{
	struct flow_list_item *ret = NULL;

	for (int i = 0; i < 16; i++) {
		struct flow_list_item *item = &bucket_of(list, hash, i / 8)[i % 8];

		if (rank(item->state) != of_rank || item->deadline_s - list->now_s >= below_s)
			continue;
		if (ret == NULL || item->deadline_s < ret->deadline_s)
			ret = item;
	}
	return ret;
}

// A place in a bucket that nobody alive holds.
static bool empty_place(struct flow_list *list, struct flow_list_item *bucket,
	struct flow_list_item **ret, enum flow_insert *ret_result)
{
	for (int i = 0; i < 8; i++) {
		*ret = &bucket[i];
		*ret_result = FLOW_INSERT_FREE;
		if (!bucket[i].used)
			return true;
	}
	for (int i = 0; i < 8; i++) {
		*ret = &bucket[i];
		*ret_result = FLOW_INSERT_EXPIRED;
		if (!is_live(list, &bucket[i]))
			return true;
	}
	return false;
}

static enum flow_insert choose(struct flow_list *list, uint64_t hash, bool is_syn,
	uint64_t newcomer_s, struct flow_list_item **ret)
{
	enum flow_insert result;

	if (empty_place(list, bucket_of(list, hash, 0), ret, &result) ||
		empty_place(list, bucket_of(list, hash, 1), ret, &result))
		return result;
	if ((*ret = victim(list, hash, 0, UINT64_MAX)) != NULL)
		return FLOW_INSERT_EVICT_UNPROVEN;
	if (is_syn)
		return FLOW_INSERT_REFUSED;
	if ((*ret = victim(list, hash, 1, UINT64_MAX)) != NULL)
		return FLOW_INSERT_EVICT_UNPROVEN;
	if ((*ret = victim(list, hash, 2, newcomer_s / 2)) != NULL)
		return FLOW_INSERT_EVICT_OLDEST;
	return FLOW_INSERT_REFUSED;
}

enum flow_insert flow_list_insert(struct flow_list *list, uint64_t hash, enum flow_event event,
	const struct flow_choice *choice, const struct flow_idle *idle)
{
	struct flow_list_item *item = present(list, hash);
	enum flow_state state;
	enum flow_insert result;

	if (event == FLOW_EVENT_FIN || event == FLOW_EVENT_RST)
		return FLOW_INSERT_NOT_WORTH_STORING;
	state = event == FLOW_EVENT_SYN    ? FLOW_STATE_SYN
		: event == FLOW_EVENT_DATA ? FLOW_STATE_MIDWAY
					   : FLOW_STATE_UDP_ONCE;
	uint64_t life_s = idle_s(state, idle) + granule(idle_s(state, idle));

	if (item && !is_live(list, item))
		result = FLOW_INSERT_EXPIRED;
	else if (item && event == FLOW_EVENT_SYN && item->state == FLOW_STATE_CLOSING)
		result = FLOW_INSERT_FREE;
	else if (item)
		return FLOW_INSERT_FOUND;
	else
		result = choose(list, hash, event == FLOW_EVENT_SYN, life_s, &item);
	if (result == FLOW_INSERT_REFUSED)
		return result;
	*item = (struct flow_list_item){.used = true,
		.tag = tag_of(hash),
		.state = state,
		.backend = choice->backend,
		.uses_new = choice->uses_new,
		.deadline_s = list->now_s + life_s};
	return result;
}

uint64_t flow_list_sweep(struct flow_list *list, uint64_t *ret_half_open)
{
	uint64_t expired = 0;

	*ret_half_open = 0;
	for (uint64_t i = 0; i < list->bucket_count * 8; i++) {
		struct flow_list_item *item = &list->items[i];

		if (item->used && !is_live(list, item)) {
			item->used = false;
			expired++;
		} else if (item->used && item->state == FLOW_STATE_SYN) {
			item->state = FLOW_STATE_SYN_WAITING;
		} else if (item->used && item->state == FLOW_STATE_SYN_WAITING) {
			item->state = FLOW_STATE_SYN_ABORTED;
			++*ret_half_open;
		}
	}
	return expired;
}

uint64_t flow_list_count(const struct flow_list *list)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < list->bucket_count * 8; i++)
		count += is_live(list, &list->items[i]);
	return count;
}
