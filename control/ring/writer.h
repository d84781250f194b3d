// SPDX-License-Identifier: Apache-2.0
// Writes a ring image from points in order. Private to control/ring and the tests, which give it points that no chain
// would make.
#pragma once

#include "common/ring.h"

#define WRITER_BLOCK 512u // points handed over at once, at most

struct writer_point {
	uint32_t hash;
	uint32_t owner;
};

// Finds out whether 16-bit index entries can say where the runs of a v3 image start.
struct writer_survey {
	uint32_t count; // of the whole ring
	uint32_t bits;
	uint32_t before; // points seen
	uint32_t prefix; // the next one whose start is not known yet
	int64_t furthest;
};

void writer_survey_begin(struct writer_survey *survey, uint32_t point_count, uint32_t member_count);
void writer_survey_put(
	struct writer_survey *survey, const struct writer_point *points, uint32_t count);

// Returns the bytes of an index entry: 2, or 4 for lopsided points. After all points.
uint32_t writer_survey_width(const struct writer_survey *survey);

struct writer {
	struct ring_header header;
	uint8_t *image;
	uint32_t *words; // the points, as any version stores them
	void *index;
	uint32_t at;          // points written
	uint32_t next_prefix; // whose start is not written yet
	void *digest;         // XXH3 state
};

// Starts an image. header: laid out by ring_layout(). image: header->bytes bytes, aligned to RING_ALIGN.
// Returns 0 or -ENOMEM.
int writer_begin(struct writer *writer, const struct ring_header *header, void *image);

// Writes the next points, ascending, all hashes different. count: 0..WRITER_BLOCK.
void writer_put(struct writer *writer, const struct writer_point *points, uint32_t count);

// Ends the image after header.point_count points. backends: header.member_count ids.
void writer_end(struct writer *writer, const uint32_t *backends);
