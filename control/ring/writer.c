// SPDX-License-Identifier: Apache-2.0
#include "control/ring/writer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

void writer_survey_begin(struct writer_survey *survey, uint32_t point_count, uint32_t member_count)
{
	struct ring_header shape = {.version = RING_V3,
		.point_count = point_count,
		.member_count = member_count,
		.index_width = sizeof(uint16_t)};

	ring_layout(&shape);
	*survey = (struct writer_survey){.count = point_count, .bits = shape.prefix_bits};
}

// Notes how far the start of every prefix up to this one is from the line through the counts.
static void survey_until(struct writer_survey *survey, uint32_t prefix)
{
	for (; survey->prefix <= prefix; survey->prefix++) {
		uint64_t line = (uint64_t)survey->prefix * survey->count >> survey->bits;
		int64_t away = (int64_t)survey->before - (int64_t)line;

		away = away < 0 ? -away : away;
		survey->furthest = away > survey->furthest ? away : survey->furthest;
	}
}

void writer_survey_put(
	struct writer_survey *survey, const struct writer_point *points, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, survey->before++)
		survey_until(survey, points[i].hash >> (32 - survey->bits));
}

uint32_t writer_survey_width(const struct writer_survey *survey)
{
	struct writer_survey rest = *survey;

	// An entry is then the start itself.
	if (survey->count < 1u << 16)
		return sizeof(uint16_t);
	survey_until(&rest, UINT32_C(1) << rest.bits);
	// Starts on both sides of the line by this much are, with the line's own step, less than 2^16 apart.
	uint32_t step = (rest.count >> rest.bits) + 1;

	return rest.furthest * 2 + step < 1 << 16 ? sizeof(uint16_t) : sizeof(uint32_t);
}

int writer_begin(struct writer *writer, const struct ring_header *header, void *image)
{
	XXH3_state_t *digest = XXH3_createState();

	if (digest == NULL)
		return -ENOMEM;
	XXH3_128bits_reset(digest);
	// Who compares digests, in metrics or by eye, sees another seed as another ring.
	if (header->seed_mark != 0) {
		uint64_t mark = htole64(header->seed_mark);

		XXH3_128bits_update(digest, &mark, sizeof(mark));
	}
	// The whole image: padding is zero, so two images of one ring are equal byte for byte.
	memset(image, 0, header->bytes);
	*writer = (struct writer){
		.header = *header,
		.image = image,
		.words = (uint32_t *)((uint8_t *)image + header->points_offset),
		.index = (uint8_t *)image + header->index_offset,
		.digest = digest,
	};
	return 0;
}

static void index_until(struct writer *writer, uint32_t prefix, uint32_t start)
{
	for (; writer->next_prefix <= prefix; writer->next_prefix++) {
		if (writer->header.index_width == sizeof(uint16_t))
			((uint16_t *)writer->index)[writer->next_prefix] = (uint16_t)start;
		else
			((uint32_t *)writer->index)[writer->next_prefix] = start;
	}
}

static void put_v1(struct writer *writer, const struct writer_point *points, uint32_t count)
{
	struct ring_point_v1 *to = (struct ring_point_v1 *)writer->words + writer->at;

	for (uint32_t i = 0; i < count; i++)
		to[i] = (struct ring_point_v1){points[i].hash, points[i].owner};
}

static void put_v2(struct writer *writer, const struct writer_point *points, uint32_t count)
{
	struct ring_point_v2 *to = (struct ring_point_v2 *)writer->words + writer->at;

	for (uint32_t i = 0; i < count; i++)
		to[i] = (struct ring_point_v2){points[i].hash, (uint16_t)points[i].owner};
}

static void put_v3(struct writer *writer, const struct writer_point *points, uint32_t count)
{
	uint32_t bits = writer->header.prefix_bits;

	for (uint32_t i = 0; i < count; i++) {
		index_until(writer, points[i].hash >> (32 - bits), writer->at + i);
		writer->words[writer->at + i] = points[i].hash << bits | points[i].owner;
	}
}

// The digest of the points reads them as v2 stores them, little-endian.
static void digest_points(struct writer *writer, const struct writer_point *points, uint32_t count)
{
	struct ring_point_v2 stream[WRITER_BLOCK];

	for (uint32_t i = 0; i < count; i++)
		stream[i] = (struct ring_point_v2){
			htole32(points[i].hash), htole16((uint16_t)points[i].owner)};
	XXH3_128bits_update(writer->digest, stream, count * sizeof(stream[0]));
}

void writer_put(struct writer *writer, const struct writer_point *points, uint32_t count)
{
	switch (writer->header.version) {
	case RING_V1:
		put_v1(writer, points, count);
		break;
	case RING_V2:
		put_v2(writer, points, count);
		break;
	default:
		put_v3(writer, points, count);
	}
	digest_points(writer, points, count);
	writer->at += count;
}

void writer_end(struct writer *writer, const uint32_t *backends)
{
	struct ring_header *header = &writer->header;
	XXH128_canonical_t canonical;

	if (header->version == RING_V3) {
		index_until(writer, UINT32_C(1) << header->prefix_bits, header->point_count);
		// Behind the last point stands the owner of the first, for hashes past the last.
		if (header->point_count > 0)
			writer->words[header->point_count] =
				writer->words[0] & ((UINT32_C(1) << header->prefix_bits) - 1);
	}
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(writer->digest));
	memcpy(header->points_digest, canonical.digest, RING_DIGEST_BYTES);
	XXH3_freeState(writer->digest);
	memcpy(writer->image + header->members_offset, backends,
		header->member_count * sizeof(*backends));
	memcpy(writer->image, header, sizeof(*header));
}
