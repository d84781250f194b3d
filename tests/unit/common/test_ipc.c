// SPDX-License-Identifier: Apache-2.0
#include "common/ipc.h"

#include "tests/lib/image.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <stdlib.h>

static union {
	struct ipc_header header;
	struct ipc_gates gates;
	struct ipc_traces traces;
	uint8_t bytes[IPC_MESSAGE_BYTES_MAX];
} message;

static int check_as(uint16_t type, size_t length)
{
	message.header.magic = IPC_MAGIC;
	message.header.version = IPC_VERSION;
	message.header.type = type;
	message.header.length = (uint32_t)length;
	return ipc_check(&message, length);
}

static const struct {
	uint16_t type;
	size_t bytes;
} fixed[] = {
	{IPC_STATUS, 16},
	{IPC_LOAD_SNAPSHOT, 32},
	{IPC_EXPLAIN, 56},
	{IPC_TRACE_SET, 24},
	{IPC_TRACE_READ, 16},
	{IPC_REPLY_RESULT, 288},
	{IPC_REPLY_STATUS, 144},
	{IPC_REPLY_EXPLAIN, 96},
};

static void every_fixed_type_has_exactly_one_length(void)
{
	memset(&message, 0, sizeof(message));
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		CU_ASSERT_EQUAL(check_as(fixed[i].type, fixed[i].bytes), 0);
		for (size_t length = sizeof(struct ipc_header); length < 1024; length++) {
			if (length != fixed[i].bytes)
				CU_ASSERT_EQUAL(check_as(fixed[i].type, length), -EMSGSIZE);
		}
	}
}

static void cut_messages_are_as_long_as_their_count(void)
{
	const size_t gates = offsetof(struct ipc_gates, gates);
	const size_t traces = offsetof(struct ipc_traces, traces);

	memset(&message, 0, sizeof(message));
	for (uint32_t count = 1; count <= IPC_GATES_MAX; count++) {
		message.gates.count = count;
		CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates + count * 16), 0);
		CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates + count * 16 - 1), -EMSGSIZE);
		CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates + count * 16 + 1), -EMSGSIZE);
	}
	memset(&message, 0, sizeof(message));
	CU_ASSERT_EQUAL(check_as(IPC_REPLY_TRACES, traces), 0);
	message.traces.count = IPC_TRACES_MAX;
	CU_ASSERT_EQUAL(check_as(IPC_REPLY_TRACES, sizeof(struct ipc_traces)), 0);
}

static void counts_out_of_range_are_refused(void)
{
	const size_t gates = offsetof(struct ipc_gates, gates);

	memset(&message, 0, sizeof(message));
	CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates), -EMSGSIZE);
	message.gates.count = IPC_GATES_MAX + 1;
	CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates + (IPC_GATES_MAX + 1) * 16), -EMSGSIZE);
	// A count whose product wraps to the right length in 32 bits.
	message.gates.count = (UINT32_C(1) << 28) + 1;
	CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates + 16), -EMSGSIZE);
	CU_ASSERT_EQUAL(check_as(IPC_SET_GATES, gates - 1), -EMSGSIZE);
	memset(&message, 0, sizeof(message));
	message.traces.count = IPC_TRACES_MAX + 1;
	CU_ASSERT_EQUAL(check_as(IPC_REPLY_TRACES,
				offsetof(struct ipc_traces, traces) +
					(IPC_TRACES_MAX + 1) * sizeof(struct ipc_trace)),
		-EMSGSIZE);
}

static void a_header_that_is_not_ours_is_refused(void)
{
	memset(&message, 0, sizeof(message));
	CU_ASSERT_EQUAL(check_as(IPC_STATUS, 16), 0);
	CU_ASSERT_EQUAL(ipc_check(&message, 15), -EPROTO);
	CU_ASSERT_EQUAL(ipc_check(&message, 0), -EPROTO);
	message.header.length = 17;
	CU_ASSERT_EQUAL(ipc_check(&message, 16), -EMSGSIZE);
	message.header.length = 16;
	message.header.magic ^= 1;
	CU_ASSERT_EQUAL(ipc_check(&message, 16), -EPROTO);
	message.header.magic ^= 1;
	message.header.version = IPC_VERSION + 1;
	CU_ASSERT_EQUAL(ipc_check(&message, 16), -ENOTSUP);
	CU_ASSERT_EQUAL(check_as(0, 16), -EPROTO);
	CU_ASSERT_EQUAL(check_as(7, 16), -EPROTO);
	CU_ASSERT_EQUAL(check_as(105, 16), -EPROTO);
}

static void gates_checksum_depends_on_each_threshold_and_salt(void)
{
	struct image_shape shape = {
		.generation = 1, .pool_count = 3, .backend_count = 6, .points = 2, .staged = true};
	struct snapshot *snapshot = malloc(sizeof(*snapshot));
	uint64_t bytes, whole;
	void *image = image_build(&shape, &bytes);

	snapshot_view(image, snapshot);
	whole = ipc_gates_checksum(snapshot);
	for (uint32_t i = 0; i < 3; i++) {
		snapshot_gate_set(&snapshot->pools[i], 1);
		CU_ASSERT_NOT_EQUAL(ipc_gates_checksum(snapshot), whole);
		snapshot_gate_set(&snapshot->pools[i], 0);
		snapshot->pools[i].gate.salt ^= 1;
		CU_ASSERT_NOT_EQUAL(ipc_gates_checksum(snapshot), whole);
		snapshot->pools[i].gate.salt ^= 1;
	}
	CU_ASSERT_EQUAL(ipc_gates_checksum(snapshot), whole);
	// A pool that is not in use has no gate.
	snapshot->pools[2].flags = 0;
	CU_ASSERT_NOT_EQUAL(ipc_gates_checksum(snapshot), whole);
	whole = ipc_gates_checksum(snapshot);
	snapshot_gate_set(&snapshot->pools[2], 7);
	CU_ASSERT_EQUAL(ipc_gates_checksum(snapshot), whole);
	free(image);
	free(snapshot);
}

static const struct test_case cases[] = {
	{"every_fixed_type_has_exactly_one_length", every_fixed_type_has_exactly_one_length},
	{"cut_messages_are_as_long_as_their_count", cut_messages_are_as_long_as_their_count},
	{"counts_out_of_range_are_refused", counts_out_of_range_are_refused},
	{"a_header_that_is_not_ours_is_refused", a_header_that_is_not_ours_is_refused},
	{"gates_checksum_depends_on_each_threshold_and_salt",
		gates_checksum_depends_on_each_threshold_and_salt},
};

int main(void)
{
	return SUITE_RUN("ipc", cases);
}
