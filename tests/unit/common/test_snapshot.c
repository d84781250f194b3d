// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot.h"

#include "common/flow.h"
#include "tests/lib/image.h"
#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

// Three pools of two backends each: services 0..2, rings 0..5, backends 0..5.
static const struct image_shape shape = {.generation = 7,
	.pool_count = 3,
	.backend_count = 6,
	.points = 4,
	.staged = true,
	.tunnel = SNAPSHOT_TUNNEL_GUE};

static uint8_t *image;
static uint64_t image_bytes;
static struct snapshot *view;
static struct snapshot_error error;

static void setup(void)
{
	image = image_build(&shape, &image_bytes);
	view = malloc(sizeof(*view));
}

static void teardown(void)
{
	free(image);
	free(view);
}

static int open_sealed(void)
{
	image_seal(image);
	memset(&error, 0, sizeof(error));
	return snapshot_open(image, image_bytes, view, &error);
}

// Where an element of a section starts.
static uint64_t at(size_t section, uint32_t index)
{
	struct snapshot_section found;

	memcpy(&found, image + section, sizeof(found));
	return found.offset + (uint64_t)index * found.stride;
}

#define SECTION(name) offsetof(struct snapshot_header, name)
#define MEMBER(s, f)  offsetof(struct snapshot_##s, f), sizeof(((struct snapshot_##s *)0)->f)
#define HEADER(f, v, t)                                                \
	{                                                              \
		0, 0, offsetof(struct snapshot_header, f),             \
			sizeof(((struct snapshot_header *)0)->f), v, t \
	}
#define PART(p, f, v, t)                                                 \
	{                                                                \
		0, 0, SECTION(p) + offsetof(struct snapshot_section, f), \
			sizeof(((struct snapshot_section *)0)->f), v, t  \
	}
#define BINDING(i, f, v, t)                                    \
	{                                                      \
		SECTION(bindings), i, MEMBER(binding, f), v, t \
	}
#define SERVICE(i, f, v, t)                                    \
	{                                                      \
		SECTION(services), i, MEMBER(service, f), v, t \
	}
#define POOL(i, f, v, t)                                 \
	{                                                \
		SECTION(pools), i, MEMBER(pool, f), v, t \
	}
#define BACKEND(i, f, v, t)                                    \
	{                                                      \
		SECTION(backends), i, MEMBER(backend, f), v, t \
	}
#define RING(i, f, v, t)                                 \
	{                                                \
		SECTION(rings), i, MEMBER(ring, f), v, t \
	}

// One field of a valid image, a value that it must not have, and what the refusal must name.
static const struct spoil {
	size_t section; // 0: from the start of the image
	uint32_t index;
	size_t offset;
	size_t bytes;
	uint64_t value; // in a longer field the first eight bytes
	const char *text;
} spoils[] = {
	HEADER(magic, 1, "header: magic is 0000000000000001"),
	HEADER(format, 0, "header: format 0"),
	HEADER(header_bytes, 255, "header: header_bytes is 255"),
	HEADER(generation, 0, "header: generation is 0"),
	HEADER(unknown, 2, "header: unknown is 2"),
	HEADER(ring_seeds, 1, NULL),
	HEADER(ring_seeds, 2, "header: ring_seeds is 2"),
	HEADER(reserved, 1, "header: reserved"),
	HEADER(reserved2, 1, "header: reserved"),
	PART(bindings, offset, 0, "bindings: offset 0 lies before 256"),
	PART(bindings, offset, 257, "bindings: offset 257 is no multiple of 64"),
	PART(bindings, offset, UINT64_MAX - 63,
		"bindings: 384 bytes at offset 18446744073709551552"),
	PART(bindings, count, 65537, "bindings: count 65537 is above the limit"),
	PART(bindings, stride, 31, "bindings: stride 31"),
	PART(services, offset, 256, "services: offset 256 lies before"),
	PART(services, count, 16385, "services: count 16385 is above the limit"),
	PART(services, stride, 0, "services: stride 0"),
	PART(services, count, 4, "pools: offset"),
	PART(pools, offset, 64, "pools: offset 64 lies before"),
	PART(pools, count, 16385, "pools: count 16385 is above the limit"),
	PART(pools, stride, 128, "pools: stride 128"),
	PART(backends, offset, 0, "backends: offset 0 lies before"),
	PART(backends, count, (1u << 20) + 1, "backends: count 1048577 is above the limit"),
	PART(backends, stride, 33, "backends: stride 33"),
	PART(rings, offset, 0, "rings: offset 0 lies before"),
	PART(rings, offset, UINT64_C(1) << 40, "rings: 96 bytes at offset 1099511627776"),
	PART(rings, count, 1025, "rings: count 1025 is above the limit"),
	PART(rings, stride, 8, "rings: stride 8"),
	BINDING(1, address.family, 5, "binding 1: address of family 5"),
	BINDING(1, address.family, 0, "binding 1: address of family 0"),
	BINDING(1, address.bytes[4], 1, "binding 1: address of family 4"),
	BINDING(1, address.reserved[2], 1, "binding 1: address of family 4"),
	BINDING(1, prefix_bits, 33, "binding 1: prefix_bits is 33"),
	BINDING(2, prefix_bits, 129, "binding 2: prefix_bits is 129"),
	BINDING(1, prefix_bits, 24, NULL),
	BINDING(1, prefix_bits, 23, "binding 1: address has bits beyond prefix_bits 23"),
	BINDING(1, prefix_bits, 31, NULL),
	BINDING(5, prefix_bits, 31, "binding 5: address has bits beyond prefix_bits 31"),
	BINDING(1, protocol, 1, "binding 1: protocol 1"),
	BINDING(1, service, 3, "binding 1: service 3"),
	BINDING(1, reserved, 1, "binding 1: reserved"),
	SERVICE(2, flags, 4, "service 2: unknown flags 0x4"),
	SERVICE(2, flags, 2, "service 2: unknown flags 0x2"),
	SERVICE(2, flags, 0, "binding 8: service 2"),
	SERVICE(2, pool, 3, "service 2: pool 3"),
	SERVICE(2, pool, 1, "service 2: ring_old 4 is of pool 2, the service of pool 1"),
	SERVICE(2, ring_old, 6, "service 2: ring_old 6 of 6"),
	SERVICE(2, ring_old, SNAPSHOT_NO_RING, "service 2: ring_old 4294967295 of 6"),
	SERVICE(2, ring_new, 6, "service 2: ring_new 6 of 6"),
	SERVICE(2, ring_new, 1, "service 2: ring_new 1 is of pool 0"),
	SERVICE(2, ring_new, SNAPSHOT_NO_RING, NULL),
	SERVICE(2, affinity, FLOW_AFFINITY_COUNT, "service 2: unknown affinity"),
	SERVICE(2, tunnel, SNAPSHOT_TUNNEL_COUNT, "service 2: unknown tunnel"),
	SERVICE(2, gue_port_be, 0, "service 2: gue_port is 0"),
	SERVICE(2, source4_bits, 33, "service 2: source4_bits is 33"),
	SERVICE(2, source4_bits, 9, "service 2: source4_bits is 9"),
	SERVICE(2, source6_bits, 129, "service 2: source6_bits is 129"),
	SERVICE(2, source4.family, 6, "service 2: source4 is no IPv4 address"),
	SERVICE(2, source4.family, 0, "service 2: source4 is no IPv4 address"),
	SERVICE(2, source4.bytes[15], 1, "service 2: source4 is no IPv4 address"),
	SERVICE(2, source6.family, 4, "service 2: source6 is no IPv6 address"),
	SERVICE(2, reserved, 1, "service 2: reserved"),
	SERVICE(2, reserved2, 1, "service 2: reserved"),
	SERVICE(2, idle_syn_s, 0, "service 2: idle_syn_s is 0"),
	SERVICE(2, idle_established_s, 7201, "service 2: idle_established_s is 7201"),
	SERVICE(2, idle_closing_s, 0, "service 2: idle_closing_s is 0"),
	SERVICE(2, idle_udp_s, 65535, "service 2: idle_udp_s is 65535"),
	POOL(1, flags, 2, "pool 1: unknown flags 0x2"),
	POOL(1, flags, 0, "backend 1: pool 1"),
	POOL(1, reserved, 1, "pool 1: reserved"),
	POOL(1, gate.word, GATE_ALWAYS, NULL),
	POOL(1, gate.word, GATE_RECALL, NULL),
	POOL(1, gate.word, GATE_RECALL | 1, "pool 1: gate threshold 9223372036854775809"),
	POOL(1, gate.word, GATE_ALWAYS + 1, "pool 1: gate threshold 4294967297"),
	POOL(1, gate.reserved, 1, "pool 1: reserved"),
	POOL(1, reserved2, 1, "pool 1: reserved"),
	BACKEND(4, address.family, 9, "backend 4: address of family 9"),
	BACKEND(4, address.bytes[7], 9, "backend 4: address of family 4"),
	BACKEND(4, pool, 3, "backend 4: pool 3"),
	BACKEND(4, pool, 2, "ring 2: member 1 is of pool 2, the first one of pool 1"),
	BACKEND(4, state, 4, "backend 4: unknown state 4"),
	BACKEND(4, state, SNAPSHOT_BACKEND_FREE, "ring 2: member 1 is backend 4"),
	BACKEND(4, state, SNAPSHOT_BACKEND_DOWN, NULL),
	BACKEND(4, reserved, 1, "backend 4: reserved"),
	RING(3, offset, 0, "ring 3: offset 0 lies before"),
	RING(3, offset, 1, "ring 3: offset 1 is no multiple of 64"),
	RING(3, bytes, UINT64_MAX, "ring 3: 18446744073709551615 bytes at offset"),
	RING(3, bytes, 64, "ring 3: "),
	RING(5, offset, 1 << 30, "ring 5: "),
};

static void every_spoilt_field_is_refused_by_name(void)
{
	for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
		const struct spoil *spoil = &spoils[i];
		size_t length = spoil->bytes < 8 ? spoil->bytes : 8;
		int result;

		setup();
		memcpy(image + (spoil->section ? at(spoil->section, spoil->index) : 0) +
				spoil->offset,
			&spoil->value, length);
		result = open_sealed();
		if (spoil->text == NULL) {
			CU_ASSERT_EQUAL(result, 0);
		} else {
			CU_ASSERT_EQUAL(result, -EINVAL);
			CU_ASSERT_PTR_NOT_NULL(strstr(error.text, spoil->text));
		}
		if (result != (spoil->text ? -EINVAL : 0) || !strstr(error.text, spoil->text ?: ""))
			printf("# case %zu: %d \"%s\", expected \"%s\"\n", i, result, error.text,
				spoil->text ?: "(accepted)");
		teardown();
	}
}

static void a_valid_image_opens_with_all_its_parts(void)
{
	setup();
	CU_ASSERT_EQUAL_FATAL(open_sealed(), 0);
	CU_ASSERT_STRING_EQUAL(error.text, "");
	CU_ASSERT_EQUAL(view->header->generation, 7);
	CU_ASSERT_EQUAL(view->binding_count, 12);
	CU_ASSERT_EQUAL(view->service_count, 3);
	CU_ASSERT_EQUAL(view->pool_count, 3);
	CU_ASSERT_EQUAL(view->backend_count, 6);
	CU_ASSERT_EQUAL(view->ring_count, 6);
	CU_ASSERT_EQUAL(view->services[1].ring_new, 3);
	CU_ASSERT_EQUAL(view->bindings[4].port_be, htons(IMAGE_PORT_TCP));
	CU_ASSERT_EQUAL(view->rings[3].header->member_count, 2);
	CU_ASSERT_EQUAL(ring_member(&view->rings[3], 1), 4);
	teardown();
}

static void a_view_of_a_copy_equals_the_opened_one(void)
{
	struct snapshot *copy_view = malloc(sizeof(*copy_view));
	uint8_t *copy;

	setup();
	CU_ASSERT_EQUAL_FATAL(open_sealed(), 0);
	copy = aligned_alloc(SNAPSHOT_ALIGN, image_bytes);
	memcpy(copy, image, image_bytes);
	snapshot_view(copy, copy_view);
	CU_ASSERT_EQUAL(
		memcmp(&copy_view->hash_seed, &view->hash_seed, sizeof(view->hash_seed)), 0);
	CU_ASSERT_EQUAL(memcmp(copy_view->ring_seeds, view->ring_seeds,
				view->ring_count * sizeof(view->ring_seeds[0])),
		0);
	for (uint32_t i = 0; i < view->ring_count; i++) {
		const uint8_t *base = copy;

		CU_ASSERT_EQUAL((const uint8_t *)copy_view->rings[i].points - base,
			(const uint8_t *)view->rings[i].points - image);
		CU_ASSERT_EQUAL((const uint8_t *)copy_view->rings[i].members - base,
			(const uint8_t *)view->rings[i].members - image);
		for (uint32_t hash = 0; hash < 1u << 16; hash++)
			CU_ASSERT_EQUAL(ring_lookup(&copy_view->rings[i], hash << 16),
				ring_lookup(&view->rings[i], hash << 16));
	}
	free(copy);
	free(copy_view);
	teardown();
}

static void a_seed_of_a_ring_must_be_announced_and_whole(void)
{
	const struct image_shape seeded = {.generation = 7,
		.pool_count = 2,
		.backend_count = 6,
		.points = 8,
		.staged = true,
		.seeded = IMAGE_SEEDED_NEW};
	struct ring_header *ring;

	view = malloc(sizeof(*view));
	image = image_build(&seeded, &image_bytes);
	CU_ASSERT_EQUAL_FATAL(open_sealed(), 0);
	CU_ASSERT_TRUE(view->has_ring_seeds);
	for (uint32_t i = 0; i < view->ring_count; i++) {
		struct hash_seed own = hash_seed_expand(view->rings[i].header->hash_seed);

		CU_ASSERT_EQUAL(
			memcmp(&view->ring_seeds[i], i % 2 ? &own : &view->hash_seed, sizeof(own)),
			0);
	}
	// A program that knows of no seeds refuses the header; so nobody may leave it out.
	((struct snapshot_header *)image)->ring_seeds = 0;
	CU_ASSERT_EQUAL(open_sealed(), -EINVAL);
	CU_ASSERT_STRING_EQUAL(
		error.text, "ring 1: has a hash seed, and the header's ring_seeds is 0");
	((struct snapshot_header *)image)->ring_seeds = 1;
	ring = (struct ring_header *)view->rings[3].header;
	ring->hash_seed[15] ^= 1;
	CU_ASSERT_EQUAL(open_sealed(), -EINVAL);
	CU_ASSERT_STRING_EQUAL(error.text, "ring 3: seed_mark is not that of its hash seed");
	ring->hash_seed[15] ^= 1;
	CU_ASSERT_EQUAL(open_sealed(), 0);
	teardown();
}

static void a_cut_image_is_refused_at_every_length(void)
{
	setup();
	image_seal(image);
	for (uint64_t bytes = 0; bytes < image_bytes; bytes++) {
		uint8_t *cut = aligned_alloc(SNAPSHOT_ALIGN, (bytes + 63) / 64 * 64 + 64);

		memcpy(cut, image, bytes);
		CU_ASSERT_EQUAL(snapshot_open(cut, bytes, view, &error), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "image: "));
		free(cut);
	}
	teardown();
}

static void an_unaligned_image_is_refused(void)
{
	setup();
	CU_ASSERT_EQUAL(snapshot_open(image + 8, image_bytes - 8, view, &error), -EINVAL);
	CU_ASSERT_STRING_EQUAL(error.text, "image: not aligned to 64 bytes");
	teardown();
}

static void a_newer_format_is_told_apart_from_a_bad_image(void)
{
	setup();
	((struct snapshot_header *)image)->format = SNAPSHOT_FORMAT + 1;
	CU_ASSERT_EQUAL(open_sealed(), -ENOTSUP);
	CU_ASSERT_STRING_EQUAL(error.text, "header: format 2, this program reads format 1");
	teardown();
}

static void every_flipped_bit_breaks_the_checksum(void)
{
	setup();
	for (uint64_t bit = 0; bit < image_bytes * 8; bit++) {
		image[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CU_ASSERT_NOT_EQUAL(snapshot_open(image, image_bytes, view, &error), 0);
		image[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	CU_ASSERT_EQUAL(snapshot_open(image, image_bytes, view, &error), 0);
	teardown();
}

// Random damage behind a right checksum: nothing may be read outside (ASan), whatever the result.
static void random_damage_never_reads_outside(void)
{
	uint64_t state = suite_seed();
	unsigned refused = 0;

	for (unsigned round = 0; round < 20000; round++) {
		setup();
		for (unsigned i = suite_random(&state) % 4 + 1; i > 0; i--) {
			uint64_t where = suite_random(&state) % image_bytes;

			image[where] = (uint8_t)suite_random(&state);
		}
		// The claimed size must stay readable, since the seal is computed over it.
		((struct snapshot_header *)image)->bytes = image_bytes;
		if (open_sealed() != 0) {
			refused++;
			CU_ASSERT_NOT_EQUAL(error.text[0], 0);
		} else {
			for (uint32_t i = 0; i < view->ring_count; i++)
				ring_lookup(&view->rings[i], (uint32_t)suite_random(&state));
		}
		teardown();
	}
	CU_ASSERT(refused > 1000);
}

static void an_empty_image_is_valid(void)
{
	struct snapshot_header *header = aligned_alloc(SNAPSHOT_ALIGN, sizeof(*header));
	struct snapshot_section *sections = &header->bindings;
	const uint32_t strides[] = {sizeof(struct snapshot_binding),
		sizeof(struct snapshot_service), sizeof(struct snapshot_pool),
		sizeof(struct snapshot_backend), sizeof(struct snapshot_ring)};

	memset(header, 0, sizeof(*header));
	header->magic = SNAPSHOT_MAGIC;
	header->format = SNAPSHOT_FORMAT;
	header->header_bytes = sizeof(*header);
	header->bytes = sizeof(*header);
	header->generation = 1;
	for (size_t i = 0; i < 5; i++) {
		sections[i].offset = sizeof(*header);
		sections[i].stride = strides[i];
	}
	image_seal(header);
	view = malloc(sizeof(*view));
	CU_ASSERT_EQUAL(snapshot_open(header, sizeof(*header), view, &error), 0);
	CU_ASSERT_EQUAL(view->service_count, 0);
	free(view);
	free(header);
}

static const struct test_case cases[] = {
	{"a_seed_of_a_ring_must_be_announced_and_whole",
		a_seed_of_a_ring_must_be_announced_and_whole},
	{"a_valid_image_opens_with_all_its_parts", a_valid_image_opens_with_all_its_parts},
	{"a_view_of_a_copy_equals_the_opened_one", a_view_of_a_copy_equals_the_opened_one},
	{"every_spoilt_field_is_refused_by_name", every_spoilt_field_is_refused_by_name},
	{"a_cut_image_is_refused_at_every_length", a_cut_image_is_refused_at_every_length},
	{"an_unaligned_image_is_refused", an_unaligned_image_is_refused},
	{"a_newer_format_is_told_apart_from_a_bad_image",
		a_newer_format_is_told_apart_from_a_bad_image},
	{"every_flipped_bit_breaks_the_checksum", every_flipped_bit_breaks_the_checksum},
	{"random_damage_never_reads_outside", random_damage_never_reads_outside},
	{"an_empty_image_is_valid", an_empty_image_is_valid},
};

int main(void)
{
	return SUITE_RUN("snapshot", cases);
}
