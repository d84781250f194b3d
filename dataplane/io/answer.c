// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/answer.h"

#include "dataplane/io/hugemem.h"
#include "dataplane/io/log.h"
#include "dataplane/io/persist.h"
#include "dataplane/io/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

static void begin(
	union answer *ret, const struct ipc_header *request, enum ipc_type type, size_t bytes)
{
	memset(ret, 0, bytes);
	ret->header = (struct ipc_header){.magic = IPC_MAGIC,
		.version = IPC_VERSION,
		.type = (uint16_t)type,
		.length = (uint32_t)bytes,
		.request = request->request};
}

static uint64_t generation(const struct dataplane *dataplane)
{
	const struct snapshot *snapshot = dataplane->publication.snapshot;

	return snapshot != NULL ? snapshot->header->generation : 0;
}

// Answers with a result and the text that explains it.
static void answer_result(const struct dataplane *dataplane, union answer *ret,
	const struct ipc_header *request, int result, const char *text)
{
	begin(ret, request, IPC_REPLY_RESULT, sizeof(ret->result));
	ret->result.result = (uint32_t)-result;
	ret->result.generation = generation(dataplane);
	snprintf(ret->result.text, sizeof(ret->result.text), "%s", text);
}

// Maps the descriptor of a load. Sealed, it cannot change under us once it is checked.
static int map_image(
	const struct ipc_load *load, int descriptor, void **ret, struct snapshot_error *error)
{
	int seals = fcntl(descriptor, F_GET_SEALS);
	struct stat info;
	void *image;

	if (seals < 0 || (seals & SEALS) != SEALS) {
		snprintf(error->text, sizeof(error->text),
			"snapshot: the descriptor is not sealed against write, grow and shrink");
		return -EPERM;
	}
	if (fstat(descriptor, &info) != 0 || (uint64_t)info.st_size != load->bytes ||
		load->bytes == 0 || load->bytes > SNAPSHOT_BYTES_MAX) {
		snprintf(error->text, sizeof(error->text),
			"snapshot: the descriptor holds %lld bytes, the message says %" PRIu64,
			(long long)info.st_size, load->bytes);
		return -EINVAL;
	}
	image = mmap(NULL, load->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
	if (image == MAP_FAILED) {
		snprintf(error->text, sizeof(error->text), "snapshot: mmap: %s", strerror(errno));
		return -errno;
	}
	*ret = image;
	return 0;
}

static int load(struct dataplane *dataplane, const struct ipc_load *request, int descriptor,
	struct snapshot_error *error)
{
	void *image = NULL;
	int result = map_image(request, descriptor, &image, error);

	if (result != 0)
		return result;
	if (request->bytes >= sizeof(struct snapshot_header) &&
		((struct snapshot_header *)image)->generation != request->generation) {
		snprintf(error->text, sizeof(error->text),
			"snapshot: generation %" PRIu64 ", the message says %" PRIu64,
			((struct snapshot_header *)image)->generation, request->generation);
		result = -EINVAL;
	} else {
		result = publish_image(dataplane, image, request->bytes, error);
	}
	if (result != 0)
		munmap(image, request->bytes);
	return result;
}

// What to do after a change, so that a restart comes back with it. Failing here does not undo the change: a full disk
// must not keep a broken backend in use.
static void keep(int result, const char *name, struct snapshot_error *text)
{
	if (result == 0)
		return;
	snprintf(text->text, sizeof(text->text), "in use, but %s could not be written: %s", name,
		strerror(-result));
	log_warning("%s", text->text);
}

static void answer_load(struct dataplane *dataplane, const struct ipc_header *request,
	int descriptor, union answer *ret)
{
	struct snapshot_error error = {.text = "in use by all workers"};
	int result = load(dataplane, (const struct ipc_load *)request, descriptor, &error);

	if (result == 0) {
		log_notice("generation %" PRIu64 " is in use", generation(dataplane));
		keep(persist_snapshot(dataplane), PERSIST_SNAPSHOT_NAME, &error);
	} else {
		log_warning("refused: %s; generation %" PRIu64 " stays in use", error.text,
			generation(dataplane));
	}
	answer_result(dataplane, ret, request, result, error.text);
}

static void answer_gates(
	struct dataplane *dataplane, const struct ipc_header *request, union answer *ret)
{
	struct snapshot_error error = {.text = "in use by all workers"};
	int result = publish_gates(dataplane, (const struct ipc_gates *)request, &error);

	if (result == 0)
		keep(persist_gates(dataplane), PERSIST_GATES_NAME, &error);
	else
		log_warning("refused: %s", error.text);
	answer_result(dataplane, ret, request, result, error.text);
}

static void answer_status(
	const struct dataplane *dataplane, const struct ipc_header *request, union answer *ret)
{
	const struct publication *now = &dataplane->publication;
	struct ipc_status *status = &ret->status;

	begin(ret, request, IPC_REPLY_STATUS, sizeof(*status));
	if (now->snapshot != NULL) {
		status->generation = now->snapshot->header->generation;
		memcpy(status->id_space, now->snapshot->header->id_space, sizeof(status->id_space));
		status->snapshot_checksum = now->snapshot->header->checksum;
		status->gates_checksum = ipc_gates_checksum(now->snapshot);
	}
	status->worker_count = dataplane->options->worker_count;
	status->port_count = dataplane->options->port_count;
	status->flow_entries = flow_table_capacity(dataplane->options->flow_entries);
	for (uint32_t w = 0; w < status->worker_count; w++)
		status->flow_kept += dataplane->flows[w].kept;
	status->snapshot_bytes = now->block_bytes;
	status->hugepage_bytes = hugemem_held();
	status->started_ns = dataplane->stats.header->started_ns;
	status->startup_ns = dataplane->workers[0]->first_poll_ns - dataplane->started_ns;
	snprintf(status->version, sizeof(status->version), "%s", RINGWAY_VERSION);
}

static void answer_explain(
	const struct dataplane *dataplane, const struct ipc_header *request, union answer *ret)
{
	const struct ipc_explain *explain = (const struct ipc_explain *)request;

	if (dataplane->publication.snapshot == NULL) {
		answer_result(dataplane, ret, request, -ENOENT, "no snapshot is loaded");
		return;
	}
	begin(ret, request, IPC_REPLY_EXPLAIN, sizeof(ret->explained));
	// Main frees blocks, so it may read any worker's without a grace period.
	pipeline_explain(&dataplane->pipeline, dataplane->publication.forwarding[0], &explain->key,
		dataplane->shared.now_s, &ret->explained);
}

static void answer_trace_set(
	struct dataplane *dataplane, const struct ipc_header *request, union answer *ret)
{
	const struct ipc_trace_set *set = (const struct ipc_trace_set *)request;

	if (set->enabled > 1 || set->shift > 31) {
		answer_result(dataplane, ret, request, -EINVAL,
			"traces: enabled must be 0 or 1, shift 0 to 31");
		return;
	}
	pipeline_trace_set(&dataplane->pipeline, set->enabled != 0, set->shift);
	answer_result(dataplane, ret, request, 0, set->enabled ? "tracing" : "not tracing");
}

static void answer_traces(
	struct dataplane *dataplane, const struct ipc_header *request, union answer *ret)
{
	struct ipc_traces *traces = &ret->traces;
	uint32_t count = 0;

	begin(ret, request, IPC_REPLY_TRACES, sizeof(*traces));
	for (uint32_t w = 0; w < dataplane->options->worker_count; w++) {
		uint64_t lost = 0;

		count += pipeline_trace_read(&dataplane->workers[w]->pipeline,
			traces->traces + count, IPC_TRACES_MAX - count, &lost);
		traces->lost += lost;
	}
	traces->count = count;
	traces->header.length =
		(uint32_t)(offsetof(struct ipc_traces, traces) + count * sizeof(struct ipc_trace));
}

int answer_request(struct dataplane *dataplane, const struct ipc_header *request, int descriptor,
	union answer *ret)
{
	if ((request->type == IPC_LOAD_SNAPSHOT) != (descriptor >= 0))
		return -EPROTO;
	switch (request->type) {
	case IPC_STATUS:
		answer_status(dataplane, request, ret);
		return 0;
	case IPC_LOAD_SNAPSHOT:
		answer_load(dataplane, request, descriptor, ret);
		return 0;
	case IPC_SET_GATES:
		answer_gates(dataplane, request, ret);
		return 0;
	case IPC_EXPLAIN:
		answer_explain(dataplane, request, ret);
		return 0;
	case IPC_TRACE_SET:
		answer_trace_set(dataplane, request, ret);
		return 0;
	case IPC_TRACE_READ:
		answer_traces(dataplane, request, ret);
		return 0;
	default:
		return -EPROTO; // an answer, which nobody asked us for
	}
}
