// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/ring_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ring_set_init(
	struct ring_set *set, enum ring_version version, uint32_t points, uint32_t member_count)
{
	*set = (struct ring_set){
		.spec = {.version = version, .points = points, .member_count = member_count},
	};
	set->spec.members = calloc((size_t)member_count + 1, sizeof(*set->spec.members));
	set->texts = calloc((size_t)member_count + 1, sizeof(*set->texts));
	if (set->spec.members == NULL || set->texts == NULL)
		abort();
	for (uint32_t i = 0; i < member_count; i++) {
		set->spec.members[i].weight = 1;
		set->spec.members[i].backend = i;
		set->spec.members[i].text = set->texts[i];
	}
}

void ring_set_free(struct ring_set *set)
{
	free(set->spec.members);
	free(set->texts);
	memset(set, 0, sizeof(*set));
}

int ring_set_address(struct ring_set *set, uint32_t member, const char *text)
{
	struct ring_spec_member *m = &set->spec.members[member];
	char host[RING_SEED_TEXT_MAX + 1];
	const char *colon = strrchr(text, ':'), *end = strchr(text, ']');
	bool bracket = text[0] == '[', port = colon != NULL;

	// One colon, or one behind a bracket, leads to a port; several colons are an IPv6 address.
	if (bracket ? end == NULL || colon != end + 1 : colon != strchr(text, ':'))
		port = false;
	snprintf(set->texts[member], sizeof(set->texts[member]), "%s", text);
	snprintf(host, sizeof(host), "%s", text + bracket);
	if (bracket && end != NULL)
		host[end - text - 1] = '\0';
	else if (port)
		host[colon - text] = '\0';
	m->port = port ? (uint16_t)atoi(colon + 1) : 0;
	return addr_parse(host, &m->address);
}

void ring_set_sequence(struct ring_set *set, uint32_t base, uint16_t port)
{
	for (uint32_t i = 0; i < set->spec.member_count; i++) {
		uint32_t address = base + i;

		set->spec.members[i].port = port;
		set->spec.members[i].address = (struct ip_addr){
			.family = ADDR_V4,
			.bytes = {(uint8_t)(address >> 24), (uint8_t)(address >> 16),
				(uint8_t)(address >> 8), (uint8_t)address},
		};
	}
}

int ring_built_make(struct ring_set *set, struct ring_built *ret)
{
	struct ring_error error = {""};
	const char *reason = NULL;
	int result = ring_spec_normalise(&set->spec, &error);

	*ret = (struct ring_built){0};
	if (result != 0) {
		printf("# refused: %s\n", error.text);
		return result;
	}
	result = ring_build_image(&set->spec, &ret->image, &ret->bytes);
	if (result == 0)
		result = ring_open(ret->image, ret->bytes, &ret->ring, &reason);
	if (reason != NULL)
		printf("# image: %s\n", reason);
	return result;
}

void ring_built_free(struct ring_built *built)
{
	free(built->image);
	*built = (struct ring_built){0};
}

int ring_built_from_points(enum ring_version version, uint32_t member_count,
	const struct writer_point *points, uint32_t count, struct ring_built *ret)
{
	struct ring_header header = {.magic = RING_MAGIC,
		.version = (uint16_t)version,
		.point_count = count,
		.member_count = member_count,
		.usable_count = member_count};
	uint32_t *backends = calloc(member_count + 1, sizeof(*backends));
	struct writer_survey survey;
	struct writer writer;
	const char *reason = NULL;

	writer_survey_begin(&survey, count, member_count);
	writer_survey_put(&survey, points, count);
	header.index_width = version == RING_V3 ? writer_survey_width(&survey) : 0;
	if (backends == NULL || ring_layout(&header) != 0)
		abort();
	*ret = (struct ring_built){aligned_alloc(RING_ALIGN, header.bytes), header.bytes, {0}};
	if (ret->image == NULL || writer_begin(&writer, &header, ret->image) != 0)
		abort();
	for (uint32_t i = 0; i < member_count; i++)
		backends[i] = i;
	for (uint32_t i = 0; i < count; i += WRITER_BLOCK)
		writer_put(
			&writer, points + i, count - i < WRITER_BLOCK ? count - i : WRITER_BLOCK);
	writer_end(&writer, backends);
	free(backends);
	int result = ring_open(ret->image, ret->bytes, &ret->ring, &reason);

	if (reason != NULL)
		printf("# image: %s\n", reason);
	return result;
}
