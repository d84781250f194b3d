// SPDX-License-Identifier: Apache-2.0
#include "control/cli/explain.h"

#include "control/cli/explain_snapshot.h"
#include "control/cli/flow_text.h"
#include "control/cli/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_BYTES_MAX (UINT64_C(4) << 30)

// Reads an image into aligned memory, since ring_open() wants whole cache lines.
static enum answer load(struct cli *cli, const char *path, void **ret_image, uint64_t *ret_bytes)
{
	FILE *in = fopen(path, "rb");
	void *image = NULL;
	long bytes;

	if (in == NULL)
		return cli_fail(cli, answer_of_errno(errno), "%s: %s", path, strerror(errno));
	if (fseek(in, 0, SEEK_END) == 0 && (bytes = ftell(in)) > 0 &&
		(uint64_t)bytes <= IMAGE_BYTES_MAX) {
		rewind(in);
		image = aligned_alloc(SNAPSHOT_ALIGN,
			((size_t)bytes + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN);
		if (image != NULL && fread(image, 1, (size_t)bytes, in) != (size_t)bytes) {
			free(image);
			image = NULL;
		}
		*ret_bytes = (uint64_t)bytes;
	}
	fclose(in);
	if (image == NULL)
		return cli_fail(
			cli, ANSWER_INVALID, "%s: cannot be read as a snapshot image", path);
	*ret_image = image;
	return ANSWER_DONE;
}

// A backend by its id: an image holds addresses, no names.
static json_t *backend_json(const struct snapshot *snapshot, uint32_t id)
{
	char address[ADDR_TEXT_BYTES];

	if (id >= snapshot->backend_count)
		return json_null();
	addr_format(&snapshot->backends[id].address, address);
	return json_pack("{s:s, s:s, s:I}", "address", address, "state",
		explain_state_name(snapshot->backends[id].state), "id", (json_int_t)id);
}

static json_t *explained_json(
	const struct snapshot *snapshot, const struct ipc_explained *explained)
{
	json_t *ret =
		json_pack("{s:s, s:s, s:I}", "verdict", explain_verdict_name(explained->verdict),
			"source", "image", "generation", (json_int_t)explained->generation);

	if (ret != NULL && explained->verdict != IPC_EXPLAIN_NO_SERVICE) {
		json_t *more = json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:o}",
			"service_id", (json_int_t)explained->service, "flow_hash",
			json_sprintf("0x%016llx", (unsigned long long)explained->flow_hash),
			"ring_hash", (json_int_t)explained->ring_hash, "new_ring_hash",
			(json_int_t)explained->ring_hash_new, "bucket",
			(json_int_t)explained->bucket, "threshold",
			(json_int_t)explained->threshold, "uses_new", explained->uses_new,
			"old_ring_pick", backend_json(snapshot, explained->backend_old),
			"new_ring_pick", backend_json(snapshot, explained->backend_new), "backend",
			backend_json(snapshot, explained->backend));

		json_object_update(ret, more);
		json_decref(more);
	}
	if (ret != NULL)
		json_object_set_new(ret, "why", json_string(explain_why(explained)));
	return ret;
}

static enum answer explain_image(struct cli *cli, const struct flow_key *key)
{
	const char *path = cli->value[CLI_FILE];
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	struct ipc_explained explained;
	struct snapshot_error error;
	uint64_t bytes = 0;
	void *image = NULL;
	enum answer answer = snapshot ? load(cli, path, &image, &bytes)
				      : cli_fail(cli, ANSWER_FAILED, "out of memory");

	if (answer == ANSWER_DONE && snapshot_open(image, bytes, snapshot, &error) != 0)
		answer = cli_fail(cli, ANSWER_INVALID, "%s: %s", path, error.text);
	if (answer == ANSWER_DONE) {
		json_t *result;

		explain_snapshot(snapshot, key, &explained);
		result = explained_json(snapshot, &explained);
		answer = result ? request_print(cli, result)
				: cli_fail(cli, ANSWER_FAILED, "out of memory");
		json_decref(result);
	}
	free(image);
	free(snapshot);
	return answer;
}

enum answer explain_run(struct cli *cli)
{
	struct flow_key key;
	char error[256];

	if (flow_text_parse(cli->operand[0], cli->operand[1], cli->operand[2], &key, error) != 0)
		return cli_fail(cli, ANSWER_USAGE, "%s", error);
	return cli_has(cli, CLI_FILE) ? explain_image(cli, &key) : request_run(cli);
}
