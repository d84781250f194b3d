// SPDX-License-Identifier: Apache-2.0
// Messages between ringwayd and ringway-dataplane: SOCK_SEQPACKET, one message a record, host byte order.
//
// Every message starts with ipc_header and has exactly the length that its type says; anything else closes the
// connection. A request is answered once, in order, by IPC_REPLY_* of the same request number. The peer must be
// root or the uid of the run directory's owner (SO_PEERCRED). File: <run directory>/dataplane.sock, mode 0600.
#pragma once

#include "common/flow.h"
#include "common/snapshot.h"
#include "common/stats.h"

#define IPC_MAGIC             UINT32_C(0x59574752) // "RGWY"
#define IPC_VERSION           1u
#define IPC_SOCKET_NAME       "dataplane.sock"
#define IPC_STATS_NAME        "stats"
#define IPC_MESSAGE_BYTES_MAX 65536u
#define IPC_GATES_MAX         1024u
#define IPC_TRACES_MAX        512u
#define IPC_TEXT_BYTES        256u

enum ipc_type {
	IPC_STATUS = 1, // no body                     -> IPC_REPLY_STATUS
	IPC_LOAD_SNAPSHOT =
		2, // ipc_load + one descriptor   -> IPC_REPLY_RESULT, after all workers use it
	IPC_SET_GATES = 3,  // ipc_gates, cut to count     -> IPC_REPLY_RESULT
	IPC_EXPLAIN = 4,    // ipc_explain                 -> IPC_REPLY_EXPLAIN
	IPC_TRACE_SET = 5,  // ipc_trace_set               -> IPC_REPLY_RESULT
	IPC_TRACE_READ = 6, // no body                     -> IPC_REPLY_TRACES, cut to count
	IPC_REPLY_RESULT = 101,
	IPC_REPLY_STATUS = 102,
	IPC_REPLY_EXPLAIN = 103,
	IPC_REPLY_TRACES = 104,
};

struct ipc_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;    // enum ipc_type
	uint32_t length;  // of the whole message
	uint32_t request; // chosen by the asker, copied into the reply
};

// The descriptor is a memfd sealed against write, grow and shrink.
struct ipc_load {
	struct ipc_header header;
	uint64_t bytes;
	uint64_t generation; // of the image; must match it and be greater than the one in use
};

struct ipc_gate {
	uint32_t pool; // id
	uint32_t salt; // must equal the snapshot's
	uint64_t word; // of the gate
};

// All or nothing: one bad pool id or salt refuses the message.
struct ipc_gates {
	struct ipc_header header;
	uint64_t generation; // of the snapshot in use; another one refuses the message
	uint32_t count;      // 1..IPC_GATES_MAX
	uint32_t reserved;
	struct ipc_gate gates[IPC_GATES_MAX];
};

// result: 0 or an errno value; text says why and what serves now.
struct ipc_result {
	struct ipc_header header;
	uint32_t result;
	uint32_t reserved;
	uint64_t generation; // in use after this request
	char text[IPC_TEXT_BYTES];
};

struct ipc_status {
	struct ipc_header header;
	uint64_t generation; // 0: none loaded yet
	uint8_t id_space[16];
	uint64_t snapshot_checksum;
	uint64_t
		gates_checksum; // hash of all (pool id, salt, word) in use, see ipc_gates_checksum()
	uint32_t worker_count;
	uint32_t port_count;
	uint64_t flow_entries;   // a worker
	uint64_t flow_kept;      // entries taken over from the flow table of the process before
	uint64_t snapshot_bytes; // a worker's copy
	uint64_t hugepage_bytes;
	uint64_t started_ns;
	uint64_t startup_ns; // from exec to the first poll
	char version[32];
};

struct ipc_explain {
	struct ipc_header header;
	struct flow_key key;
};

enum ipc_explain_verdict {
	IPC_EXPLAIN_FORWARD = 0,
	IPC_EXPLAIN_NO_SERVICE = 1,
	IPC_EXPLAIN_NO_BACKEND = 2,
};

struct ipc_explained {
	struct ipc_header header;
	uint32_t verdict; // enum ipc_explain_verdict
	uint32_t service;
	uint64_t flow_hash;
	uint32_t ring_hash; // that the old ring and the gate see
	uint32_t bucket;
	uint64_t threshold;
	uint32_t uses_new;
	uint32_t backend_old; // pick on the old ring, SELECTION_NO_BACKEND if none
	uint32_t backend_new; // pick on the new ring
	uint32_t backend;     // what a packet of this flow gets now
	uint32_t in_table;    // 1: an entry pins the flow
	uint32_t table_worker;
	uint32_t table_backend;
	uint32_t table_age_s;
	uint32_t ring_hash_new;  // that the new ring sees
	uint32_t table_recalled; // 1: a rollback lets the flow pick again at its next packet
	uint64_t generation;
};

// Traces: 1 of 2^shift flows that need a backend, by flow hash, so that every node samples the same flows.
struct ipc_trace_set {
	struct ipc_header header;
	uint32_t enabled;
	uint32_t shift; // 0..31
};

// How the flow table answered before the rings were asked.
enum ipc_trace_table {
	IPC_TRACE_MISS = 0,      // it did not know the flow
	IPC_TRACE_HIT_OTHER = 2, // another worker's knew it: the flow keeps its backend
	IPC_TRACE_STALE = 3,     // it knew a backend that is down or gone
	IPC_TRACE_RECALLED = 4,  // it knew one of the new ring, and the gate takes those flows back
};

// What became of the flow's entry.
enum ipc_trace_entry {
	IPC_TRACE_NOT_STORED = 0, // the service keeps no flows
	IPC_TRACE_INSERTED = 1,
	IPC_TRACE_OVER_EXPIRED = 2,  // over an entry past its time
	IPC_TRACE_OVER_UNPROVEN = 3, // evicted a flow that had shown a SYN alone
	IPC_TRACE_OVER_OLDEST = 4,   // evicted the oldest flow of a full bucket
	IPC_TRACE_REFUSED = 5,       // the bucket is full of flows that are worth more
	IPC_TRACE_REWRITTEN = 6,     // its own entry, for the new backend
};

struct ipc_trace {
	uint64_t time_ns; // CLOCK_REALTIME
	struct flow_key key;
	uint32_t service;
	uint32_t ring_hash; // that the old ring and the gate see
	uint32_t bucket;
	uint32_t backend_old;
	uint32_t backend_new;
	uint32_t backend;
	uint64_t threshold;
	uint8_t uses_new;
	uint8_t table; // enum ipc_trace_table
	uint8_t worker;
	uint8_t entry;          // enum ipc_trace_entry
	uint32_t ring_hash_new; // that the new ring sees
};

struct ipc_traces {
	struct ipc_header header;
	uint64_t lost; // since the last read
	uint32_t count;
	uint32_t reserved;
	struct ipc_trace traces[IPC_TRACES_MAX];
};

_Static_assert(sizeof(struct ipc_gates) <= IPC_MESSAGE_BYTES_MAX, "one record");
_Static_assert(sizeof(struct ipc_traces) <= IPC_MESSAGE_BYTES_MAX, "one record");

// Checks header, version, type and length of a message that arrived.
// Returns 0, -EPROTO when it is none of ours, -ENOTSUP for another version, -EMSGSIZE for a wrong length.
int ipc_check(const void *message, size_t length);

// The hash of the gates of a snapshot as they stand, by which ringwayd sees whether they are what it set.
uint64_t ipc_gates_checksum(const struct snapshot *snapshot);
