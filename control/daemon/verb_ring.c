// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/verbs.h"

#include "control/ring/spec.h"

#include <stdio.h>

// "web", "web+nvme,eu", "web@new": what `ring show` and `ring diff` take.
static json_t *name_of(const struct node_ring *ring)
{
	char text[1024];
	int used = snprintf(text, sizeof(text), "%s", ring->pool);

	for (uint32_t i = 0; i < ring->tag_count && used < (int)sizeof(text) - 1; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%c%s", i ? ',' : '+',
			ring->tags[i]);
	if (ring->is_new && used < (int)sizeof(text) - 1)
		snprintf(text + used, sizeof(text) - (size_t)used, "@new");
	return json_string(text);
}

static json_t *ring_json(const struct node_ring *ring, uint32_t workers)
{
	const struct ring_header *header = ring->ring->header;
	char digest[2 * RING_DIGEST_BYTES + 1], spec_digest[2 * RING_DIGEST_BYTES + 1];
	json_t *tags = json_array();

	for (uint32_t i = 0; i < ring->tag_count; i++)
		json_array_append_new(tags, json_string(ring->tags[i]));
	ring_digest_format(header->points_digest, digest);
	ring_digest_format(header->spec_digest, spec_digest);
	return json_pack(
		"{s:o, s:s, s:o, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:i, s:s, s:s}",
		"name", name_of(ring), "pool", ring->pool, "tags", tags, "role",
		ring->is_new ? "new" : "old", "version", config_ring_version_name(header->version),
		"backends", (int)header->member_count, "usable", (int)header->usable_count,
		"points", (int)header->point_count, "worker_bytes", (json_int_t)header->bytes,
		"node_bytes", (json_int_t)(header->bytes * workers), "v1_worker_bytes",
		(json_int_t)ring->v1_bytes, "v1_node_bytes", (json_int_t)(ring->v1_bytes * workers),
		"services", (int)ring->service_count, "digest", digest, "spec_digest", spec_digest);
}

void verb_ring_list(struct server_call *call)
{
	const struct node *node = verbs_of(call)->node;
	uint32_t workers = node_config(node)->dataplane.worker_count;
	uint64_t bytes = 0, v1_bytes = 0;
	const struct node_ring *rings;
	uint32_t count = node_rings(node, &rings);
	json_t *rows = json_array();

	for (uint32_t i = 0; i < count; i++) {
		bytes += rings[i].ring->header->bytes;
		v1_bytes += rings[i].v1_bytes;
		json_array_append_new(rows, ring_json(&rings[i], workers));
	}
	call->result = json_pack("{s:o, s:{s:i, s:i, s:I, s:I, s:I, s:I, s:I}}", "rings", rows,
		"total", "rings", (int)count, "workers", (int)workers, "worker_bytes",
		(json_int_t)bytes, "node_bytes", (json_int_t)(bytes * workers), "v1_worker_bytes",
		(json_int_t)v1_bytes, "v1_node_bytes", (json_int_t)(v1_bytes * workers),
		"dataplane_hugepage_bytes",
		(json_int_t)node_dataplane(node)->status.hugepage_bytes);
}
