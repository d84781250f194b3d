// SPDX-License-Identifier: Apache-2.0
// Every one of the 2^32 hashes, by every twin of the v3 lookup, against the sorted points of the naive oracle.
#include "common/ring_v3.h"
#include "tests/lib/ring_set.h"
#include "tests/lib/suite.h"
#include "tests/oracle/horrible_ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURST 32u

// The owners of BURST hashes from first on. next: the first point whose hash is >= first; moves on.
static void expect(const struct horrible_ring *oracle, uint32_t first, uint32_t *next,
	uint32_t ret_owners[BURST])
{
	for (uint32_t i = 0; i < BURST; i++) {
		while (*next < oracle->count && oracle->points[*next].hash < first + i)
			++*next;
		ret_owners[i] = oracle->points[*next < oracle->count ? *next : 0].owner;
	}
}

#define HALF (UINT64_C(1) << 31)

// Bursts of [from, from + HALF) that a twin looks up wrong.
static uint64_t count_wrong(enum ring_v3_twin twin, const struct ring *ring,
	const struct horrible_ring *oracle, uint64_t from)
{
	uint32_t hashes[BURST], owners[BURST], expected[BURST], next = 0;
	uint64_t wrong = 0;

	for (uint64_t first = from; first < from + HALF; first += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			hashes[i] = (uint32_t)first + i;
		ring_v3_burst(twin, ring, hashes, BURST, owners);
		expect(oracle, (uint32_t)first, &next, expected);
		wrong += memcmp(owners, expected, sizeof(owners)) != 0;
	}
	return wrong;
}

// The upper half by a process of its own: most machines have a second CPU.
static void check_twin(
	enum ring_v3_twin twin, const struct ring *ring, const struct horrible_ring *oracle)
{
	pid_t child = fork();
	int status = 1;

	CU_ASSERT_FATAL(child >= 0);
	if (child == 0)
		_exit(count_wrong(twin, ring, oracle, HALF) != 0);
	uint64_t wrong = count_wrong(twin, ring, oracle, 0);

	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	printf("# twin %d: 4294967296 hashes, %" PRIu64 " bursts of the lower half wrong\n", twin,
		wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void all_hashes_by_all_twins(void)
{
	struct horrible_ring oracle;
	struct ring_built built;
	struct ring_set set;

	ring_set_init(&set, RING_V3, 16, 2048);
	ring_set_sequence(&set, 0x0a140000, 8080);
	CU_ASSERT_EQUAL_FATAL(ring_built_make(&set, &built), 0);
	horrible_ring_build(&set.spec, &oracle);
	CU_ASSERT_EQUAL_FATAL(built.ring.header->point_count, oracle.count);
	for (int twin = 0; twin < RING_V3_TWIN_COUNT; twin++) {
		if (ring_v3_twin_runs(twin))
			check_twin(twin, &built.ring, &oracle);
		else
			printf("# twin %d does not run on this CPU\n", twin);
	}
	horrible_ring_free(&oracle);
	ring_built_free(&built);
	ring_set_free(&set);
}

int main(void)
{
	static const struct test_case cases[] = {
		{"all_hashes_by_all_twins", all_hashes_by_all_twins},
	};

	return SUITE_RUN("ring exhaustive", cases);
}
