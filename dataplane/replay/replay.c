// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replay/replay.h"

#include "dataplane/table/flow_table.h"
#include "dataplane/table/neighbour_table.h"

#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <sys/stat.h>

#define HEADROOM      128u
#define TAILROOM      128u
#define FRAME_MAX     262144u // libpcap's own limit for a captured packet
#define BUFFER_BYTES  (HEADROOM + FRAME_MAX + TAILROOM)
#define NS_PER_S      UINT64_C(1000000000)
#define QUESTIONS_MAX 64u

// Questions to neighbours go out this often, as in a live process.
#define QUESTIONS_NS UINT64_C(100000000)

struct replay {
	const struct replay_options *options;
	struct snapshot_error *error;
	struct replay_result result;

	pcap_t *input;
	pcap_t *output_format;
	pcap_dumper_t *output;

	void *image;
	struct snapshot *snapshot;
	struct pipeline *pipeline;
	struct pipeline_worker worker;
	struct forwarding *forwarding;
	void *stats;

	uint8_t (*buffers)[BUFFER_BYTES]; // [PACKET_BURST]
	struct packet packets[PACKET_BURST];
	uint64_t times_ns[PACKET_BURST];
	unsigned count;
	uint64_t asked_ns;
};

static int fail(struct replay *replay, int code, const char *path, const char *what)
{
	size_t length = strlen(path);

	// libpcap names the file itself now and then.
	if (strncmp(what, path, length) == 0 && strncmp(what + length, ": ", 2) == 0)
		what += length + 2;
	snprintf(replay->error->text, sizeof(replay->error->text), "%.100s: %.80s", path, what);
	return code;
}

static void *allocate(uint64_t align, uint64_t bytes)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);

	if (memory != NULL)
		memset(memory, 0, bytes);
	return memory;
}

// Reads a whole file into memory at SNAPSHOT_ALIGN. Returns NULL with errno.
static void *read_file(const char *path, uint64_t *ret_bytes)
{
	FILE *file = fopen(path, "re");
	struct stat status;
	void *memory = NULL;

	if (file == NULL)
		return NULL;
	// A device or a pipe has no size; it reads as an empty image, and snapshot_open() says so.
	if (fstat(fileno(file), &status) == 0)
		memory = allocate(SNAPSHOT_ALIGN, (uint64_t)status.st_size + 1);
	if (memory != NULL &&
		fread(memory, 1, (size_t)status.st_size, file) != (size_t)status.st_size) {
		free(memory);
		memory = NULL;
		errno = EIO;
	}
	fclose(file);
	*ret_bytes = (uint64_t)status.st_size;
	return memory;
}

static int open_snapshot(struct replay *replay)
{
	const char *path = replay->options->snapshot_path;
	struct snapshot_error error;
	uint64_t bytes;
	int result;

	replay->image = read_file(path, &bytes);
	if (replay->image == NULL)
		return fail(replay, -errno, path, strerror(errno));
	replay->snapshot = malloc(sizeof(*replay->snapshot));
	if (replay->snapshot == NULL)
		return fail(replay, -ENOMEM, path, "no memory");
	result = snapshot_open(replay->image, bytes, replay->snapshot, &error);
	return result == 0 ? 0 : fail(replay, result, path, error.text);
}

static int open_input(struct replay *replay)
{
	const char *path = replay->options->input_path;
	char text[PCAP_ERRBUF_SIZE];

	replay->input =
		pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, text);
	if (replay->input == NULL)
		return fail(replay, -EINVAL, path, text);
	if (pcap_datalink(replay->input) != DLT_EN10MB)
		return fail(replay, -EINVAL, path, "is no capture of Ethernet frames");
	return 0;
}

static int open_output(struct replay *replay)
{
	const char *path = replay->options->output_path;

	replay->output_format = pcap_open_dead_with_tstamp_precision(
		DLT_EN10MB, FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
	if (replay->output_format == NULL)
		return fail(replay, -ENOMEM, path, "no memory");
	replay->output = pcap_dump_open(replay->output_format, path);
	if (replay->output == NULL)
		return fail(replay, -EIO, path, pcap_geterr(replay->output_format));
	return 0;
}

// Room for the counters of every id that the snapshot names.
static struct stats_geometry geometry_of(const struct snapshot *snapshot)
{
	struct stats_geometry geometry = {.worker_count = 1,
		.service_count = snapshot->service_count,
		.pool_count = snapshot->pool_count,
		.backend_count = snapshot->backend_count};

	return geometry;
}

static int make_worker(struct replay *replay)
{
	struct stats_geometry geometry = geometry_of(replay->snapshot);
	uint32_t entries = replay->options->flow_entries ? replay->options->flow_entries : 65536;
	void *table = allocate(FLOW_TABLE_ALIGN, flow_table_footprint(entries));
	void *scratch = allocate(PIPELINE_ALIGN, pipeline_worker_footprint());
	struct stats_worker stats;

	replay->stats = allocate(STATS_LINE, stats_footprint(&geometry));
	if (table == NULL || scratch == NULL || replay->stats == NULL) {
		free(table);
		free(scratch);
		return -ENOMEM;
	}
	stats_format(replay->stats, &geometry);
	stats = stats_worker(replay->stats, 0);
	pipeline_worker_init(&replay->worker, replay->pipeline, 0,
		flow_table_format(table, entries, 0), &stats, scratch);
	return 0;
}

static int make_pipeline(struct replay *replay)
{
	uint32_t slots = replay->snapshot->backend_count + 2 * PIPELINE_PORTS_MAX;

	replay->pipeline = malloc(sizeof(*replay->pipeline));
	replay->buffers = malloc(PACKET_BURST * sizeof(*replay->buffers));
	if (replay->pipeline == NULL || replay->buffers == NULL)
		return -ENOMEM;
	*replay->pipeline = *replay->options->pipeline;
	replay->pipeline->worker_count = 1;
	replay->pipeline->neighbours = NULL;
	void *neighbours = allocate(NEIGHBOUR_TABLE_ALIGN, neighbour_table_footprint(slots));

	if (neighbours == NULL)
		return -ENOMEM;
	replay->pipeline->neighbours = neighbour_table_format(neighbours, slots);
	if (pipeline_init(replay->pipeline) != 0)
		return -EINVAL;
	if (make_worker(replay) != 0)
		return -ENOMEM;
	void *memory = allocate(SNAPSHOT_ALIGN, forwarding_footprint(replay->snapshot));

	if (memory == NULL)
		return -ENOMEM;
	if (forwarding_build(memory, replay->snapshot, replay->pipeline, &replay->forwarding) !=
		0) {
		free(memory);
		return -ENOSPC;
	}
	replay->worker.forwarding = replay->forwarding;
	return 0;
}

static void write_frame(
	struct replay *replay, uint64_t time_ns, const uint8_t *bytes, uint32_t length)
{
	struct pcap_pkthdr header = {.caplen = length, .len = length};

	header.ts.tv_sec = (time_t)(time_ns / NS_PER_S);
	header.ts.tv_usec = (suseconds_t)(time_ns % NS_PER_S); // nanoseconds, as the format says
	pcap_dump((u_char *)replay->output, &header, bytes);
	replay->result.packets_out++;
}

// Answers what is asked, when every neighbour is at one MAC.
static void answer_neighbours(struct replay *replay)
{
	struct neighbour_table *neighbours = replay->pipeline->neighbours;
	struct neighbour_request request;

	while (neighbour_table_due(neighbours, replay->worker.now_s, &request, 1) == 1) {
		struct neighbour_answer answer = {
			.port = request.port, .address = request.address, .overrides = true};

		memcpy(answer.mac, replay->options->neighbour_mac, sizeof(answer.mac));
		neighbour_table_learn(neighbours, &answer, replay->worker.now_s);
	}
}

static void ask_neighbours(struct replay *replay)
{
	static const uint8_t none[6];
	struct pipeline_frame frames[QUESTIONS_MAX];
	uint64_t now_ns = replay->worker.now_ns;
	unsigned count;

	if (replay->asked_ns != 0 && now_ns - replay->asked_ns < QUESTIONS_NS)
		return;
	replay->asked_ns = now_ns;
	if (memcmp(replay->options->neighbour_mac, none, sizeof(none)) != 0) {
		answer_neighbours(replay);
		return;
	}
	count = pipeline_neighbour_frames(
		replay->pipeline, replay->worker.now_s, frames, QUESTIONS_MAX);
	for (unsigned i = 0; i < count; i++)
		write_frame(replay, now_ns, frames[i].bytes, frames[i].length);
	replay->worker.stats.counter[COUNTER_generated] += count;
}

static bool leaves(const struct packet *packet)
{
	return packet->verdict == PACKET_FORWARD || packet->verdict == PACKET_ANSWER ||
		packet->verdict == PACKET_DROP_REPLY;
}

// Runs the packets collected so far, at the time of the first.
static void run_burst(struct replay *replay)
{
	struct pipeline_worker *worker = &replay->worker;

	if (replay->count == 0)
		return;
	// A capture may hold packets out of order; the pipeline's clock only goes forward.
	if (replay->times_ns[0] > worker->now_ns)
		worker->now_ns = replay->times_ns[0];
	worker->now_s = (uint32_t)(worker->now_ns / NS_PER_S);
	ask_neighbours(replay);
	pipeline_burst(worker, replay->packets, replay->count);
	pipeline_book_sent(worker, replay->packets, replay->count);
	for (unsigned i = 0; i < replay->count; i++) {
		const struct packet *packet = &replay->packets[i];

		if (leaves(packet))
			write_frame(replay, replay->times_ns[i], packet->data, packet->length);
	}
	pipeline_housekeep(worker);
	replay->count = 0;
}

static void add_packet(
	struct replay *replay, const struct pcap_pkthdr *header, const uint8_t *bytes)
{
	uint64_t time_ns = (uint64_t)header->ts.tv_sec * NS_PER_S + (uint64_t)header->ts.tv_usec;
	uint32_t length = header->caplen < FRAME_MAX ? header->caplen : FRAME_MAX;
	uint8_t *buffer;

	// A burst is short in time too, or the clock of its last packets would be wrong.
	if (replay->count > 0 && time_ns - replay->times_ns[0] > NS_PER_S / 1000)
		run_burst(replay);
	buffer = replay->buffers[replay->count];
	memcpy(buffer + HEADROOM, bytes, length);
	replay->packets[replay->count] = (struct packet){.data = buffer + HEADROOM,
		.length = length,
		.headroom = HEADROOM,
		.tailroom = TAILROOM};
	replay->times_ns[replay->count++] = time_ns;
	replay->result.packets_in++;
	if (replay->count == PACKET_BURST)
		run_burst(replay);
}

static int run(struct replay *replay)
{
	const char *path = replay->options->input_path;
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int more;

	while ((more = pcap_next_ex(replay->input, &header, &bytes)) == 1)
		add_packet(replay, header, bytes);
	run_burst(replay);
	if (more == PCAP_ERROR)
		return fail(replay, -EIO, path, pcap_geterr(replay->input));
	if (pcap_dump_flush(replay->output) != 0)
		return fail(replay, -EIO, replay->options->output_path, "cannot be written");
	return 0;
}

static void report(struct replay *replay, FILE *to)
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++) {
		replay->result.counter[i] = replay->worker.stats.counter[i];
		if (to != NULL && replay->result.counter[i] != 0)
			fprintf(to, "%s %" PRIu64 "\n", stats_counter_name((enum counter)i),
				replay->result.counter[i]);
	}
	for (unsigned i = 0; i < DROP_COUNT; i++) {
		replay->result.drop[i] = replay->worker.stats.drop[i];
		if (to != NULL && replay->result.drop[i] != 0)
			fprintf(to, "drop %s %" PRIu64 "\n", stats_drop_name((enum drop_reason)i),
				replay->result.drop[i]);
	}
}

static void close_all(struct replay *replay)
{
	if (replay->output != NULL)
		pcap_dump_close(replay->output);
	if (replay->output_format != NULL)
		pcap_close(replay->output_format);
	if (replay->input != NULL)
		pcap_close(replay->input);
	if (replay->pipeline != NULL)
		free(replay->pipeline->neighbours);
	free(replay->worker.scratch);
	free(replay->worker.flow_table);
	free(replay->pipeline);
	free(replay->forwarding);
	free(replay->stats);
	free(replay->snapshot);
	free(replay->image);
	free(replay->buffers);
	free(replay);
}

int replay_run(const struct replay_options *options, struct replay_result *ret,
	struct snapshot_error *ret_error)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int result;

	if (replay == NULL)
		return -ENOMEM;
	replay->options = options;
	replay->error = ret_error;
	result = open_input(replay);
	if (result == 0)
		result = open_snapshot(replay);
	if (result == 0) {
		result = make_pipeline(replay);
		if (result != 0)
			fail(replay, result, options->snapshot_path,
				result == -EINVAL ? "the ports given cannot run a pipeline"
						  : strerror(-result));
	}
	// The output comes last: a replay that cannot begin leaves an earlier one's file alone.
	if (result == 0)
		result = open_output(replay);
	if (result == 0)
		result = run(replay);
	if (result == 0) {
		report(replay, options->report);
		*ret = replay->result;
	}
	close_all(replay);
	return result;
}
