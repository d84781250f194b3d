// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/cutovers.h"

#include "control/cutover/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEY_BYTES 128

struct fleet_cutover *fleet_cutover_parse(const char *text, size_t length, char *ret_error)
{
	struct fleet_cutover *cutover = calloc(1, sizeof(*cutover));
	json_t *object = json_loadb(text, length, 0, NULL);
	char why[CUTOVER_REASON_BYTES] = "is no JSON";

	if (cutover != NULL && object != NULL && cutover_read(object, &cutover->cutover, why) == 0)
		cutover->text = strndup(text, length);
	json_decref(object);
	if (cutover != NULL && cutover->text != NULL)
		return cutover;
	snprintf(ret_error, STORE_ERROR_BYTES, "the document of a cutover %.190s", why);
	fleet_cutover_free(cutover);
	return NULL;
}

void fleet_cutover_free(struct fleet_cutover *cutover)
{
	if (cutover == NULL)
		return;
	free(cutover->text);
	free(cutover);
}

void fleet_cutovers_free(struct fleet_cutovers *cutovers)
{
	for (uint32_t i = 0; i < cutovers->count; i++)
		fleet_cutover_free(cutovers->items[i]);
	cutovers->count = 0;
}

int fleet_cutover_read(
	struct store *store, const char *pool, struct fleet_cutover **ret, char *ret_error)
{
	char key[KEY_BYTES], *text = NULL;
	size_t length;

	snprintf(key, sizeof(key), FLEET_CUTOVER_PREFIX "%s", pool);
	int rc = store_key_read(store, key, &text, &length);

	if (rc == 0) {
		*ret = fleet_cutover_parse(text, length, ret_error);
		rc = *ret ? 0 : -EINVAL;
	} else if (rc == -ENOENT) {
		snprintf(ret_error, STORE_ERROR_BYTES, "pool %s is in no cutover", pool);
	} else {
		snprintf(ret_error, STORE_ERROR_BYTES, "%s", store_error(store));
	}
	free(text);
	return rc;
}

struct listing {
	struct fleet_cutovers cutovers;
	char *error;
};

static int take(void *context, const char *key, const char *value, size_t length)
{
	struct listing *listing = context;

	(void)key;
	if (listing->cutovers.count == FLEET_CUTOVERS_MAX)
		return 0;
	struct fleet_cutover *cutover = fleet_cutover_parse(value, length, listing->error);

	if (cutover != NULL)
		listing->cutovers.items[listing->cutovers.count++] = cutover;
	return 0;
}

int fleet_cutovers_read(struct store *store, struct fleet_cutovers *ret, char *ret_error)
{
	struct listing *listing = calloc(1, sizeof(*listing));

	if (listing == NULL)
		return -ENOMEM;
	ret_error[0] = '\0';
	listing->error = ret_error;
	int rc = store_key_list(store, FLEET_CUTOVER_PREFIX, take, listing);

	if (rc == 0) {
		*ret = listing->cutovers;
	} else {
		snprintf(ret_error, STORE_ERROR_BYTES, "%s", store_error(store));
		fleet_cutovers_free(&listing->cutovers);
	}
	free(listing);
	return rc;
}

char *fleet_cutover_text(const struct cutover *cutover)
{
	json_t *object = cutover_write(cutover);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

int fleet_cutover_swap(struct store *store, const struct fleet_cutover *before,
	const struct cutover *next, char *ret_error)
{
	char key[KEY_BYTES], *text = fleet_cutover_text(next);

	if (text == NULL) {
		snprintf(ret_error, STORE_ERROR_BYTES, "out of memory");
		return -ENOMEM;
	}
	snprintf(key, sizeof(key), FLEET_CUTOVER_PREFIX "%s", next->spec.pool);
	int rc = store_key_swap(store, key, before ? before->text : NULL, text);

	if (rc < 0)
		snprintf(ret_error, STORE_ERROR_BYTES, "%s", store_error(store));
	free(text);
	return rc;
}

static json_t *position(const struct cutover *cutover)
{
	char low[CUTOVER_SHARE_TEXT_BYTES], high[CUTOVER_SHARE_TEXT_BYTES];

	if (cutover == NULL)
		return json_null();
	cutover_share_format(cutover_share_min(cutover), low);
	cutover_share_format(cutover_share_max(cutover), high);
	return json_pack("{s:s, s:I, s:I, s:s, s:s}", "state", cutover_state_name(cutover->state),
		"revision", (json_int_t)cutover->revision, "stage", (json_int_t)cutover->stage + 1,
		"share_min", low, "share_max", high);
}

int fleet_audit(struct store *store, const struct fleet_event *event)
{
	struct timespec now;
	struct tm utc;
	char when[40], plan[17];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(when + strlen(when), 8, ".%03uZ", (unsigned)(now.tv_nsec / 1000000) % 1000);
	snprintf(plan, sizeof(plan), "%016llx", (unsigned long long)event->after->plan_id);
	json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s}", "time",
		when, "node", event->node, "verb", event->verb, "actor", event->actor, "pool",
		event->after->spec.pool, "plan", plan, "reason", event->reason ? event->reason : "",
		"before", position(event->before), "after", position(event->after), "result",
		event->result ? event->result : "");
	char *text = entry ? json_dumps(entry, JSON_COMPACT) : NULL;
	int rc = text ? store_audit_append(store, text) : -ENOMEM;

	free(text);
	json_decref(entry);
	return rc;
}
