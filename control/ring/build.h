// SPDX-License-Identifier: Apache-2.0
// Builds rings: from a specification to sorted points, from points to an image, and health into an image.
//
//	specification -> ring_points_build()  -> points -> ring_points_write() -> image -> ring_resolve() -> snapshot
//	                 ring_points_change()
//
// Pure: nothing here logs, reads a clock or touches a file.
#pragma once

#include "control/ring/spec.h"

// The sorted points of a ring with all that a later change needs. About 4.1 bytes a point.
struct ring_points;

// Builds the points of a normalised specification.
// Memory while building: the result and about a byte a point. Cost: docs/ring.md section 6.
// Returns 0; -ENOMEM. The caller frees *ret.
int ring_points_build(const struct ring_spec *spec, struct ring_points **ret);

void ring_points_free(struct ring_points *points);

enum ring_change {
	RING_CHANGE_ADD,
	RING_CHANGE_REMOVE,
	RING_CHANGE_WEIGHT,
};

// Follows a change of one member in place, so that the points are those of a fresh build.
// points: of the specification before the change. spec: after it, normalised; all else must be the same.
// owner: the member's position; for RING_CHANGE_REMOVE in the members before, else in spec's.
// A change that does not fit (a prefix is full, too many members for the bits of an entry, lanes) builds anew.
// Returns 0; -ENOMEM, then the points are as they were.
// Cost: some tens of nanoseconds a point of the member; docs/ring.md section 6.
int ring_points_change(struct ring_points *points, const struct ring_spec *spec,
	enum ring_change change, uint32_t owner);

// Points left after equal hashes are cut to one (the first call counts them), and before the cut; members.
uint32_t ring_points_count(struct ring_points *points);
uint32_t ring_points_generated(const struct ring_points *points);
uint32_t ring_points_members(const struct ring_points *points);

// Computes the hashes that each owner gets, without making an image: for rings that are only looked at.
// ties: the version whose order of equal hashes decides. ret_arcs: ring_points_members() words, summing to 2^32, or
// all 0 if there is no point. Cost: one pass over the points.
void ring_points_arcs(const struct ring_points *points, enum ring_version ties, uint64_t *ret_arcs);

// Bytes of the image that ring_points_write() makes.
size_t ring_points_image_bytes(struct ring_points *points);

// Writes the image: all members usable, both digests set.
// image: ring_points_image_bytes() bytes, aligned to RING_ALIGN; every byte is written.
// Returns 0 or -ENOMEM (the state of the digest).
int ring_points_write(struct ring_points *points, void *image);

// Gives the points of unusable members to the next usable owner along the ring, in place. The digests stay.
// image: a fresh copy of what ring_points_write() made (health does not add up: start from the unresolved image).
// usable: one bit a member (owner), word by word; NULL: all are usable. With none, usable_count is 0 and every
// lookup says RING_NO_OWNER.
// Cost: one pass over the points, backwards.
void ring_resolve(void *image, const uint64_t *usable);

// Builds an unresolved image of a normalised specification in one go.
// Returns 0; -ENOMEM. The caller frees *ret_image with free().
int ring_build_image(const struct ring_spec *spec, void **ret_image, size_t *ret_bytes);
