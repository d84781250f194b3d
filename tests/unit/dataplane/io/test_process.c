// SPDX-License-Identifier: Apache-2.0
// The real program, run as an operator would, without root or huge pages. Packets come from a capture and go to one.
#include "common/ipc.h"
#include "tests/lib/dataplane_client.h"
#include "tests/lib/image.h"
#include "tests/lib/packet_builder.h"
#include "tests/lib/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLOWS 200

static const char *program;
static char dir[] = "/tmp/ringway-process-XXXXXX";
static char run_dir[64];
static char output[8192]; // standard error of the last process that ended

struct process {
	pid_t pid;
	int error; // its standard error
};

static struct process start_with(const char *const *extra)
{
	const char *argv[48] = {program, "--run-dir", run_dir, "--workers", "0", "--flow-entries",
		"4096", "--services", "16", "--pools", "16", "--backends", "64", "--idle-sleep",
		"--eal", "--no-huge", "--eal", "--no-shconf"};
	struct process process;
	int pipes[2], argc = 0;

	while (argv[argc] != NULL)
		argc++;
	while (*extra != NULL)
		argv[argc++] = *extra++;
	if (pipe2(pipes, O_CLOEXEC) != 0)
		abort();
	process.pid = fork();
	if (process.pid == 0) {
		dup2(pipes[1], 2);
		dup2(open("/dev/null", O_WRONLY), 1); // EAL shows its usage there
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(pipes[1]);
	process.error = pipes[0];
	return process;
}

static struct process start(void)
{
	static const char *const extra[] = {"--port", "net_null0,no-rx=1", NULL};

	return start_with(extra);
}

// Collects what the process said and its exit status: the code, or 128 and its signal. Waits 30 s at most.
static int finish(struct process process)
{
	size_t used = 0;
	ssize_t length = 1;
	int status = 0;

	while (length > 0 && used < sizeof(output) - 1) {
		struct pollfd wait = {.fd = process.error, .events = POLLIN};

		if (poll(&wait, 1, 30000) != 1) {
			kill(process.pid, SIGKILL);
			break;
		}
		length = read(process.error, output + used, sizeof(output) - 1 - used);
		used += length > 0 ? (size_t)length : 0;
	}
	output[used] = '\0';
	close(process.error);
	waitpid(process.pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int stop(struct process process, int signal_number)
{
	kill(process.pid, signal_number);
	return finish(process);
}

static void clear_run_dir(void)
{
	static const char *const names[] = {
		"snapshot.img", "gates.img", "flows.0", "flows.1", "stats"};
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", run_dir, names[i]);
		unlink(path);
	}
}

static void *make_image(uint64_t generation, uint64_t *ret_bytes)
{
	struct image_shape shape = {.generation = generation,
		.pool_count = 2,
		.backend_count = 8,
		.points = 40,
		.staged = true};

	return image_build(&shape, ret_bytes);
}

static struct ipc_result load_generation(int fd, uint64_t generation)
{
	struct ipc_result result = {.result = UINT32_MAX};
	uint64_t bytes;
	void *image = make_image(generation, &bytes);

	CU_ASSERT_EQUAL(client_load(fd, image, bytes, &result), 0);
	free(image);
	return result;
}

// Phases that add up to the whole, each of which took time.
static bool startup_adds_up(uint64_t startup_ns)
{
	const struct stats_header *header;
	char path[128];
	int fd;
	bool good = true;

	snprintf(path, sizeof(path), "%s/" IPC_STATS_NAME, run_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	header = mmap(NULL, sizeof(*header), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (header == MAP_FAILED)
		return false;
	for (int phase = 0; phase < STARTUP_PHASES; phase++) {
		good = good && header->startup_ns[phase] > 0;
		startup_ns -= header->startup_ns[phase];
	}
	munmap((void *)(uintptr_t)header, sizeof(*header));
	return good && startup_ns == 0;
}

static void it_starts_answers_and_stops_on_sigterm(void)
{
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_status status;
	struct stat info;
	char path[128];

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	CU_ASSERT_EQUAL(status.generation, 0);
	CU_ASSERT_EQUAL(status.worker_count, 1);
	CU_ASSERT_EQUAL(status.port_count, 1);
	CU_ASSERT_EQUAL(status.flow_entries, 4096);
	CU_ASSERT(status.startup_ns > 1000000);
	CU_ASSERT(startup_adds_up(status.startup_ns));
	snprintf(path, sizeof(path), "%s/" IPC_SOCKET_NAME, run_dir);
	CU_ASSERT_EQUAL(stat(path, &info), 0);
	CU_ASSERT_EQUAL(info.st_mode & 0777, 0600);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	CU_ASSERT_NOT_EQUAL(stat(path, &info), 0);
	snprintf(path, sizeof(path), "%s/" IPC_STATS_NAME, run_dir);
	CU_ASSERT_EQUAL(stat(path, &info), 0);
	CU_ASSERT_EQUAL(info.st_mode & 0777, 0644);
	close(fd);
}

// Tells whether a line stands in /proc/PID/status.
static bool status_says(pid_t pid, const char *wanted)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		found = strncmp(line, wanted, strlen(wanted)) == 0;
	if (file != NULL)
		fclose(file);
	return found;
}

static void privileges_are_given_up_before_it_is_ready(void)
{
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_status status;

	// It answers once it serves, and it serves after they are gone.
	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	CU_ASSERT_TRUE(status_says(process.pid, "NoNewPrivs:\t1"));
	CU_ASSERT_TRUE(status_says(process.pid, "CapEff:\t0000000000000000"));
#ifndef __SANITIZE_ADDRESS__
	CU_ASSERT_TRUE(status_says(process.pid, "Seccomp:\t2"));
#endif
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	close(fd);
}

static void snapshot_and_gates_come_back_after_kill_9(void)
{
	struct ipc_gate gate = {.pool = 1, .salt = 0x5a170001u, .word = 12345};
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_status before, after;
	struct ipc_result result;

	CU_ASSERT_EQUAL(load_generation(fd, 7).result, 0);
	CU_ASSERT_EQUAL(client_gate(fd, 7, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, 0);
	CU_ASSERT_EQUAL(client_status(fd, &before), 0);
	CU_ASSERT_EQUAL(before.generation, 7);
	CU_ASSERT_EQUAL(stop(process, SIGKILL), 128 + SIGKILL);
	close(fd);

	process = start();
	fd = client_connect(run_dir);
	CU_ASSERT_EQUAL(client_status(fd, &after), 0);
	CU_ASSERT_EQUAL(after.generation, 7);
	CU_ASSERT_EQUAL(after.gates_checksum, before.gates_checksum);
	CU_ASSERT_EQUAL(memcmp(after.id_space, before.id_space, sizeof(after.id_space)), 0);
	// A newer snapshot brings its own gates.
	CU_ASSERT_EQUAL(load_generation(fd, 8).result, 0);
	CU_ASSERT_EQUAL(client_status(fd, &after), 0);
	CU_ASSERT_NOT_EQUAL(after.gates_checksum, before.gates_checksum);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(output, "generation 7 is back in use"));
	close(fd);
	clear_run_dir();
}

// A capture: the gateway's answer first, then a SYN for each flow.
static void write_capture(const char *path)
{
	static const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	static struct frame frame;
	FILE *file = fopen(path, "wb");

	fwrite(header, sizeof(header), 1, file);
	for (unsigned i = 0; i <= FLOWS; i++) {
		uint32_t record[4] = {1, i, 0, 0};

		FRAME_START(&frame);
		if (i == 0) {
			FRAME_ARP(&frame, .operation = 2, .sender_mac = MAC_ROUTER,
				.sender = "192.0.2.1", .target_mac = MAC_BALANCER,
				.target = "192.0.2.10");
		} else {
			FRAME_IP4(&frame, .source = "198.51.100.7", .destination = "203.0.113.0");
			FRAME_TCP(&frame, .source_port = 1000 + i,
				.destination_port = IMAGE_PORT_TCP, .flags = FRAME_SYN);
		}
		frame_finish(&frame);
		record[2] = record[3] = frame.length;
		fwrite(record, sizeof(record), 1, file);
		fwrite(frame.bytes, frame.length, 1, file);
	}
	fclose(file);
}

struct forwarded {
	unsigned count;
	uint8_t frames[FLOWS][128];
};

// Reads the frames that went to backends: IPv4 (0800) that holds IPv4 (protocol 4).
static void read_capture(const char *path, struct forwarded *ret)
{
	FILE *file = fopen(path, "rb");
	uint32_t record[4];
	uint8_t bytes[2048];

	memset(ret, 0, sizeof(*ret));
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fseek(file, 24, SEEK_SET);
	while (fread(record, sizeof(record), 1, file) == 1 && record[2] <= sizeof(bytes) &&
		fread(bytes, record[2], 1, file) == 1) {
		if (bytes[12] == 8 && bytes[13] == 0 && bytes[23] == 4 && record[2] <= 128 &&
			ret->count < FLOWS)
			memcpy(ret->frames[ret->count++], bytes, record[2]);
	}
	fclose(file);
}

static struct process start_on_capture(const char *output_name)
{
	static char device[256];
	const char *const extra[] = {
		"--port", device, "--address", "192.0.2.10/24", "--gateway", "192.0.2.1", NULL};

	snprintf(device, sizeof(device), "net_pcap0,rx_pcap=%s/in.pcap,tx_pcap=%s/%s", dir, dir,
		output_name);
	return start_with(extra);
}

// Waits until the whole capture has been read, and tells what became of it.
static uint64_t wait_for_forwarded(void)
{
	char path[128];
	int fd;
	void *memory;
	const uint64_t *counter;
	uint64_t forwarded;

	snprintf(path, sizeof(path), "%s/" IPC_STATS_NAME, run_dir);
	fd = open(path, O_RDONLY);
	memory = mmap(NULL, 4096 * 64, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	counter = stats_worker(memory, 0).counter;
	for (unsigned i = 0; i < 2000; i++) {
		const struct timespec pause = {.tv_nsec = 5000000};

		if (__atomic_load_n(&counter[COUNTER_rx_packets], __ATOMIC_RELAXED) == FLOWS + 1)
			break;
		nanosleep(&pause, NULL);
	}
	CU_ASSERT_EQUAL(counter[COUNTER_rx_packets], FLOWS + 1);
	forwarded = counter[COUNTER_forwarded];
	munmap(memory, 4096 * 64);
	return forwarded;
}

// The same capture before and after kill -9, with the gate turned to the other ring in between: the flow table keeps
// every flow where it was.
static void flows_stay_with_their_backends_over_kill_9(void)
{
	static struct forwarded first, second;
	struct ipc_gate gate = {.pool = 0, .salt = 0x5a170000u, .word = GATE_ALWAYS};
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_result result;
	struct ipc_status status;
	char path[64];

	CU_ASSERT_EQUAL(load_generation(fd, 1).result, 0);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/in.pcap", dir);
	write_capture(path);

	process = start_on_capture("first.pcap");
	fd = client_connect(run_dir);
	CU_ASSERT_EQUAL(wait_for_forwarded(), FLOWS);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0); // closes the capture
	process = start();
	fd = client_connect(run_dir);
	CU_ASSERT_EQUAL(client_gate(fd, 1, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, 0);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGKILL), 128 + SIGKILL);

	process = start_on_capture("second.pcap");
	fd = client_connect(run_dir);
	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	CU_ASSERT_EQUAL(status.flow_kept, FLOWS);
	CU_ASSERT_EQUAL(wait_for_forwarded(), FLOWS);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/first.pcap", dir);
	read_capture(path, &first);
	unlink(path);
	snprintf(path, sizeof(path), "%s/second.pcap", dir);
	read_capture(path, &second);
	unlink(path);
	CU_ASSERT_EQUAL(first.count, FLOWS);
	CU_ASSERT_EQUAL(memcmp(&first, &second, sizeof(first)), 0);
	snprintf(path, sizeof(path), "%s/in.pcap", dir);
	unlink(path);
	close(fd);
	clear_run_dir();
}

// Runs the capture at a gate, then leaves another gate behind and dies by kill -9; what went to backends in *ret.
static void run_capture(uint64_t word, uint64_t word_after, struct forwarded *ret)
{
	struct ipc_gate gate = {.pool = 0, .salt = 0x5a170000u, .word = word};
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_result result;
	struct ipc_status status;
	char path[64];

	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	if (status.generation == 0)
		CU_ASSERT_EQUAL(load_generation(fd, 1).result, 0);
	CU_ASSERT_EQUAL(client_gate(fd, 1, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, 0);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGKILL), 128 + SIGKILL);

	process = start_on_capture("out.pcap");
	fd = client_connect(run_dir); // it is there, and so is its stats file
	CU_ASSERT_EQUAL(wait_for_forwarded(), FLOWS);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0); // closes the capture
	snprintf(path, sizeof(path), "%s/out.pcap", dir);
	read_capture(path, ret);
	unlink(path);
	CU_ASSERT_EQUAL(ret->count, FLOWS);

	process = start();
	fd = client_connect(run_dir);
	gate.word = word_after;
	CU_ASSERT_EQUAL(client_gate(fd, 1, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, 0);
	close(fd);
	CU_ASSERT_EQUAL(stop(process, SIGKILL), 128 + SIGKILL);
}

// Flows of the new ring that are recalled go to the old ring's backends with the first packet after kill -9, byte by byte
// as if they had always been there.
static void recall_comes_back_after_kill_9(void)
{
	static struct forwarded old_ring, new_ring, recalled;
	char path[64];

	snprintf(path, sizeof(path), "%s/in.pcap", dir);
	write_capture(path);
	run_capture(GATE_NEVER, GATE_NEVER, &old_ring);
	clear_run_dir();
	run_capture(GATE_ALWAYS, GATE_RECALL, &new_ring);
	CU_ASSERT_NOT_EQUAL(memcmp(&new_ring, &old_ring, sizeof(old_ring)), 0);
	run_capture(GATE_RECALL, GATE_NEVER, &recalled);
	CU_ASSERT_EQUAL(memcmp(&recalled, &old_ring, sizeof(old_ring)), 0);
	unlink(path);
	clear_run_dir();
}

static void damaged_files_do_not_keep_it_from_starting(void)
{
	static const char *const names[] = {"snapshot.img", "gates.img", "flows.0"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct process process = start();
		int fd = client_connect(run_dir), file;
		struct ipc_gate gate = {.pool = 0, .salt = 0x5a170000u, .word = 1};
		struct ipc_result result;
		struct ipc_status status;
		char path[128];

		CU_ASSERT_EQUAL(load_generation(fd, 3).result, 0);
		CU_ASSERT_EQUAL(client_gate(fd, 3, &gate, &result), 0);
		close(fd);
		stop(process, SIGKILL);
		snprintf(path, sizeof(path), "%s/%s", run_dir, names[i]);
		file = open(path, O_RDWR);
		CU_ASSERT_EQUAL(pwrite(file, "spoilt", 6, 20), 6);
		close(file);
		process = start();
		fd = client_connect(run_dir);
		CU_ASSERT_EQUAL(client_status(fd, &status), 0);
		CU_ASSERT_EQUAL(status.generation, i == 0 ? 0 : 3);
		CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
		if (i < 2)
			CU_ASSERT_PTR_NOT_NULL(strstr(output, names[i]));
		close(fd);
		clear_run_dir();
	}
}

static void a_refused_snapshot_changes_nothing_and_says_why(void)
{
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_status before, after;
	struct ipc_result result;
	uint64_t bytes;
	uint8_t *image = make_image(6, &bytes);
	struct snapshot_header *header = (struct snapshot_header *)image;

	CU_ASSERT_EQUAL(load_generation(fd, 5).result, 0);
	client_status(fd, &before);
	// Older, the same, damaged, and well-formed with a service that names no pool.
	CU_ASSERT_EQUAL(load_generation(fd, 4).result, ESTALE);
	result = load_generation(fd, 5);
	CU_ASSERT_EQUAL(result.result, ESTALE);
	CU_ASSERT_EQUAL(result.generation, 5);
	CU_ASSERT_STRING_EQUAL(
		result.text, "snapshot: generation 5 is not newer than 5, which is in use");
	image[bytes - 1] ^= 1;
	CU_ASSERT_EQUAL(client_load(fd, image, bytes, &result), 0);
	CU_ASSERT_EQUAL(result.result, EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.text, "checksum"));
	image[bytes - 1] ^= 1;
	((struct snapshot_service *)(image + header->services.offset))[1].pool = 99;
	image_seal(image);
	CU_ASSERT_EQUAL(client_load(fd, image, bytes, &result), 0);
	CU_ASSERT_EQUAL(result.result, EINVAL);
	CU_ASSERT_STRING_EQUAL(result.text, "service 1: pool 99 is not in use");
	client_status(fd, &after);
	CU_ASSERT_EQUAL(after.generation, 5);
	CU_ASSERT_EQUAL(after.snapshot_checksum, before.snapshot_checksum);
	CU_ASSERT_EQUAL(after.hugepage_bytes, before.hugepage_bytes);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(output, "service 1: pool 99 is not in use; generation 5 stays"));
	close(fd);
	free(image);
	clear_run_dir();
}

static void a_snapshot_beyond_the_counters_is_refused_with_the_flag(void)
{
	struct image_shape shape = {
		.generation = 1, .pool_count = 2, .backend_count = 65, .points = 2, .staged = true};
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_result result;
	uint64_t bytes;
	void *image = image_build(&shape, &bytes);

	CU_ASSERT_EQUAL(client_load(fd, image, bytes, &result), 0);
	CU_ASSERT_EQUAL(result.result, ENOSPC);
	CU_ASSERT_STRING_EQUAL(result.text,
		"snapshot: 65 backends, counters for 64; start the dataplane with --backends 65");
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	close(fd);
	free(image);
	clear_run_dir();
}

static void gates_are_set_all_or_nothing(void)
{
	struct process process = start();
	int fd = client_connect(run_dir);
	struct ipc_gates *message = calloc(1, sizeof(*message));
	struct ipc_gate gate = {.pool = 0, .salt = 0x5a170000u, .word = 5};
	struct ipc_status before, after;
	struct ipc_result result;

	CU_ASSERT_EQUAL(client_gate(fd, 0, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, ENOENT);
	CU_ASSERT_EQUAL(load_generation(fd, 2).result, 0);
	client_status(fd, &before);
	CU_ASSERT_EQUAL(client_gate(fd, 1, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, ESTALE);
	// The first is good, the second names a wrong salt.
	client_header(&message->header, IPC_SET_GATES,
		offsetof(struct ipc_gates, gates) + 2 * sizeof(gate));
	message->generation = 2;
	message->count = 2;
	message->gates[0] = gate;
	message->gates[1] = (struct ipc_gate){.pool = 1, .salt = 1, .word = 5};
	CU_ASSERT_EQUAL(client_send(fd, message, message->header.length, NULL, 0), 0);
	CU_ASSERT_EQUAL(client_receive(fd, &result, sizeof(result)), sizeof(result));
	CU_ASSERT_EQUAL(result.result, EINVAL);
	CU_ASSERT_STRING_EQUAL(
		result.text, "gates: salt 00000001 of pool 1, the snapshot has 5a170001");
	client_status(fd, &after);
	CU_ASSERT_EQUAL(after.gates_checksum, before.gates_checksum);
	gate.word = GATE_ALWAYS + 1;
	CU_ASSERT_EQUAL(client_gate(fd, 2, &gate, &result), 0);
	CU_ASSERT_EQUAL(result.result, EINVAL);
	gate.pool = 16;
	CU_ASSERT_EQUAL(client_gate(fd, 2, &gate, &result), 0);
	CU_ASSERT_STRING_EQUAL(result.text, "gates: pool 16 is not in use");
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	close(fd);
	free(message);
	clear_run_dir();
}

// Sends a message that must cost the connection, and checks that the process serves the next client.
static void expect_closed(const void *message, size_t bytes, const int *descriptors, unsigned count)
{
	int fd = client_connect(run_dir);
	struct ipc_status status;
	uint8_t answer[64];

	CU_ASSERT_EQUAL(client_send(fd, message, bytes, descriptors, count), 0);
	CU_ASSERT_EQUAL(client_receive(fd, answer, sizeof(answer)), 0);
	close(fd);
	fd = client_connect(run_dir);
	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	close(fd);
}

static void malformed_messages_close_their_connection(void)
{
	static uint8_t big[IPC_MESSAGE_BYTES_MAX + 100];
	struct process process = start();
	struct ipc_header header;
	struct ipc_load load = {.bytes = 10};
	int memfd = client_memfd("0123456789", 10, client_seals());
	int descriptors[8] = {memfd, memfd, memfd, memfd, memfd, memfd, memfd, memfd};

	expect_closed("x", 1, NULL, 0);
	client_header(&header, IPC_STATUS, sizeof(header));
	expect_closed(&header, sizeof(header) - 1, NULL, 0);
	expect_closed(&header, sizeof(header), descriptors, 1);
	header.version++;
	expect_closed(&header, sizeof(header), NULL, 0);
	client_header(&header, IPC_REPLY_STATUS, sizeof(struct ipc_status));
	memcpy(big, &header, sizeof(header));
	expect_closed(big, sizeof(struct ipc_status), NULL, 0);
	client_header((struct ipc_header *)big, IPC_SET_GATES, sizeof(big));
	expect_closed(big, sizeof(big), NULL, 0);
	client_header(&load.header, IPC_LOAD_SNAPSHOT, sizeof(load));
	expect_closed(&load, sizeof(load), NULL, 0);
	expect_closed(&load, sizeof(load), descriptors, 2);
	expect_closed(&load, sizeof(load), descriptors, 8);
	close(memfd);
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
}

static void unsealed_or_misstated_descriptors_are_refused(void)
{
	struct process process = start();
	int fd = client_connect(run_dir), memfd;
	struct ipc_load load;
	struct ipc_result result;
	uint64_t bytes;
	uint8_t *image = make_image(1, &bytes);
	const struct {
		int seals;
		uint64_t bytes;
		uint64_t generation;
		uint32_t result;
		const char *text;
	} tries[] = {
		{0, bytes, 1, EPERM, "not sealed"},
		{F_SEAL_GROW | F_SEAL_SHRINK, bytes, 1, EPERM, "not sealed"},
		{client_seals(), bytes + 1, 1, EINVAL, "the message says"},
		{client_seals(), 0, 1, EINVAL, "the message says 0"},
		{client_seals(), bytes, 2, EINVAL, "generation 1, the message says 2"},
		{client_seals(), bytes, 1, 0, "in use by all workers"},
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		client_header(&load.header, IPC_LOAD_SNAPSHOT, sizeof(load));
		load.bytes = tries[i].bytes;
		load.generation = tries[i].generation;
		memfd = client_memfd(image, bytes, tries[i].seals);
		CU_ASSERT_EQUAL(client_send(fd, &load, sizeof(load), &memfd, 1), 0);
		CU_ASSERT_EQUAL(client_receive(fd, &result, sizeof(result)), sizeof(result));
		CU_ASSERT_EQUAL(result.result, tries[i].result);
		CU_ASSERT_PTR_NOT_NULL(strstr(result.text, tries[i].text));
		close(memfd);
	}
	CU_ASSERT_EQUAL(stop(process, SIGTERM), 0);
	close(fd);
	free(image);
	clear_run_dir();
}

static void a_second_one_in_the_same_run_directory_is_refused(void)
{
	struct process first = start(), second;
	int fd = client_connect(run_dir);
	struct ipc_status status;

	second = start();
	CU_ASSERT_EQUAL(finish(second), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(output, "another dataplane runs there"));
	CU_ASSERT_EQUAL(client_status(fd, &status), 0);
	CU_ASSERT_EQUAL(stop(first, SIGTERM), 0);
	close(fd);
}

static void faults_at_start_are_one_clear_line(void)
{
	static const struct {
		const char *extra[5];
		int status;
		const char *text;
	} faults[] = {
		{{"--port", "net_pcap0,rx_pcap=/nonexistent", NULL}, 1,
			"port net_pcap0,rx_pcap=/nonexistent: no such device"},
		{{"--port", "net_nosuch0", NULL}, 1, "EAL: No such device; its own lines above"},
		{{"--port", "net_null0", "--huge-dir", "/nonexistent", NULL}, 1,
			"flow table /nonexistent/flows.0"},
		{{"--port", "net_null0", "--mtu", "99", NULL}, 2, "--mtu 99: must be a number"},
		{{"--port", "net_null0", "--eal", "--nonsense", NULL}, 1, "EAL: "},
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		CU_ASSERT_EQUAL(finish(start_with(faults[i].extra)), faults[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(output, faults[i].text));
		if (strstr(output, faults[i].text) == NULL)
			printf("# expected \"%s\" in:\n# %s\n", faults[i].text, output);
	}
}

static const struct test_case cases[] = {
	{"it_starts_answers_and_stops_on_sigterm", it_starts_answers_and_stops_on_sigterm},
	{"privileges_are_given_up_before_it_is_ready", privileges_are_given_up_before_it_is_ready},
	{"snapshot_and_gates_come_back_after_kill_9", snapshot_and_gates_come_back_after_kill_9},
	{"flows_stay_with_their_backends_over_kill_9", flows_stay_with_their_backends_over_kill_9},
	{"recall_comes_back_after_kill_9", recall_comes_back_after_kill_9},
	{"damaged_files_do_not_keep_it_from_starting", damaged_files_do_not_keep_it_from_starting},
	{"a_refused_snapshot_changes_nothing_and_says_why",
		a_refused_snapshot_changes_nothing_and_says_why},
	{"a_snapshot_beyond_the_counters_is_refused_with_the_flag",
		a_snapshot_beyond_the_counters_is_refused_with_the_flag},
	{"gates_are_set_all_or_nothing", gates_are_set_all_or_nothing},
	{"malformed_messages_close_their_connection", malformed_messages_close_their_connection},
	{"unsealed_or_misstated_descriptors_are_refused",
		unsealed_or_misstated_descriptors_are_refused},
	{"a_second_one_in_the_same_run_directory_is_refused",
		a_second_one_in_the_same_run_directory_is_refused},
	{"faults_at_start_are_one_clear_line", faults_at_start_are_one_clear_line},
};

int main(int argc, char **argv)
{
	int status;

	if (argc != 2 || mkdtemp(dir) == NULL)
		return 1;
	program = argv[1];
	snprintf(run_dir, sizeof(run_dir), "%s/run", dir);
	status = SUITE_RUN("process", cases);
	clear_run_dir();
	rmdir(run_dir);
	rmdir(dir);
	return status;
}
