// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/files.h"
#include "dataplane/io/flow_file.h"
#include "dataplane/io/hugemem.h"
#include "dataplane/io/port.h"

#include "tests/lib/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/ringway-files-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void a_run_directory_has_one_owner_and_one_process(void)
{
	char path[128];
	int first, second;

	snprintf(path, sizeof(path), "%s", in_dir("run"));
	first = files_lock_run_dir(path, geteuid());
	CU_ASSERT_FATAL(first >= 0);
	second = files_lock_run_dir(path, geteuid());
	CU_ASSERT_EQUAL(second, -EBUSY);
	close(first);
	// Writable to others: a stranger could leave a snapshot there.
	chmod(path, 0775);
	CU_ASSERT_EQUAL(files_lock_run_dir(path, geteuid()), -EPERM);
	chmod(path, 0757);
	CU_ASSERT_EQUAL(files_lock_run_dir(path, geteuid()), -EPERM);
	chmod(path, 0755);
	first = files_lock_run_dir(path, geteuid());
	CU_ASSERT(first >= 0);
	close(first);
	rmdir(path);
	CU_ASSERT_EQUAL(files_lock_run_dir("/nonexistent/run", geteuid()), -ENOENT);
}

static void a_file_is_replaced_whole_or_not_at_all(void)
{
	const struct files_part first[] = {{"one ", 4}, {"file", 4}}, second[] = {{"new", 3}};
	void *memory;
	uint64_t bytes;
	struct stat info;

	CU_ASSERT_EQUAL(files_write(dir, "kept", first, 2), 0);
	CU_ASSERT_EQUAL(files_map_private(in_dir("kept"), &memory, &bytes), 0);
	CU_ASSERT_EQUAL(bytes, 8);
	CU_ASSERT_EQUAL(memcmp(memory, "one file", 8), 0);
	// What a reader has mapped stays as it was, whatever replaces the name.
	CU_ASSERT_EQUAL(files_write(dir, "kept", second, 1), 0);
	CU_ASSERT_EQUAL(memcmp(memory, "one file", 8), 0);
	munmap(memory, bytes);
	CU_ASSERT_EQUAL(stat(in_dir("kept"), &info), 0);
	CU_ASSERT_EQUAL(info.st_size, 3);
	CU_ASSERT_EQUAL(info.st_mode & 0777, 0600);
	CU_ASSERT_NOT_EQUAL(stat(in_dir(".kept.new"), &info), 0);
	// A name that cannot be replaced: the temporary file goes away.
	mkdir(in_dir("taken"), 0755);
	CU_ASSERT_NOT_EQUAL(files_write(dir, "taken", second, 1), 0);
	CU_ASSERT_NOT_EQUAL(stat(in_dir(".taken.new"), &info), 0);
	rmdir(in_dir("taken"));
	CU_ASSERT_EQUAL(files_write("/nonexistent", "x", second, 1), -ENOENT);
	unlink(in_dir("kept"));
}

static void an_empty_or_missing_file_is_told_apart(void)
{
	void *memory;
	uint64_t bytes;

	CU_ASSERT_EQUAL(files_map_private(in_dir("none"), &memory, &bytes), -ENOENT);
	close(open(in_dir("empty"), O_CREAT | O_WRONLY, 0600));
	CU_ASSERT_EQUAL(files_map_private(in_dir("empty"), &memory, &bytes), -ENODATA);
	unlink(in_dir("empty"));
}

static void writing_to_a_private_mapping_leaves_the_file_alone(void)
{
	const struct files_part part = {"image", 5};
	void *memory;
	uint64_t bytes;
	char read_back[5];
	int fd;

	files_write(dir, "image", &part, 1);
	CU_ASSERT_EQUAL(files_map_private(in_dir("image"), &memory, &bytes), 0);
	memcpy(memory, "spoil", 5);
	munmap(memory, bytes);
	fd = open(in_dir("image"), O_RDONLY);
	CU_ASSERT_EQUAL(read(fd, read_back, 5), 5);
	CU_ASSERT_EQUAL(memcmp(read_back, "image", 5), 0);
	close(fd);
	unlink(in_dir("image"));
}

static void a_link_in_the_way_is_not_followed(void)
{
	void *memory;
	struct stat info;

	CU_ASSERT_EQUAL(symlink("victim", in_dir("link")), 0);
	CU_ASSERT_EQUAL(files_map_shared(in_dir("link"), 4096, 0600, &memory), -ELOOP);
	CU_ASSERT_NOT_EQUAL(stat(in_dir("victim"), &info), 0);
	unlink(in_dir("link"));
}

static void flows_outlive_their_process_and_no_two_share_them(void)
{
	struct flow_file_place place = {
		.dir = dir, .index = 3, .entries = 1024, .now_s = 1000, .node = -1};
	const struct flow_choice choice = {.backend = 7};
	const struct flow_idle idle = {30, 900, 30, 60};
	struct flow_file file, second;
	struct flow_entry entry;

	CU_ASSERT_EQUAL(flow_file_missing(&place), flow_file_bytes(&place));
	CU_ASSERT_EQUAL_FATAL(flow_file_open(&file, &place), 0);
	CU_ASSERT_EQUAL(file.kept, 0);
	CU_ASSERT_EQUAL(flow_file_missing(&place), 0);
	CU_ASSERT_EQUAL(flow_file_open(&second, &place), -EBUSY);
	flow_table_insert(file.table, 0x123456789abcdef0u, FLOW_EVENT_DATA, &choice, &idle, &entry);
	flow_file_close(&file);
	CU_ASSERT_EQUAL_FATAL(flow_file_open(&file, &place), 0);
	CU_ASSERT_EQUAL(file.kept, 1);
	CU_ASSERT_NOT_EQUAL(flow_table_peek(file.table, 0x123456789abcdef0u, 1000), 0);
	flow_file_close(&file);
	// Another size, or a machine that was started again: an empty table.
	place.entries = 2048;
	CU_ASSERT_EQUAL_FATAL(flow_file_open(&file, &place), 0);
	CU_ASSERT_EQUAL(file.kept, 0);
	flow_file_close(&file);
	place.now_s = 5;
	CU_ASSERT_EQUAL_FATAL(flow_file_open(&file, &place), 0);
	CU_ASSERT_EQUAL(file.kept, 0);
	flow_file_close(&file);
	flow_file_remove_from(dir, 4);
	CU_ASSERT_EQUAL(access(in_dir("flows.3"), F_OK), 0);
	flow_file_remove_from(dir, 3);
	CU_ASSERT_NOT_EQUAL(access(in_dir("flows.3"), F_OK), 0);
}

static void memory_is_zeroed_counted_and_given_back(void)
{
	uint64_t held = hugemem_held();
	uint8_t *memory;

	hugemem_use_huge(false);
	memory = hugemem_alloc(3 << 20, -1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
	CU_ASSERT_EQUAL(hugemem_footprint(3 << 20), 4 << 20);
	CU_ASSERT_EQUAL(hugemem_held() - held, 4 << 20);
	for (size_t i = 0; i < 3 << 20; i += 4093)
		CU_ASSERT_EQUAL(memory[i], 0);
	hugemem_free(memory, 3 << 20);
	hugemem_free(NULL, 3 << 20);
	CU_ASSERT_EQUAL(hugemem_held(), held);
	CU_ASSERT(hugemem_available() > 0);
	// More than any machine has is refused, not promised.
	CU_ASSERT_PTR_NULL(hugemem_alloc(UINT64_C(1) << 50, -1));
	CU_ASSERT_EQUAL(hugemem_held(), held);
}

static void virtual_devices_get_what_their_workers_need(void)
{
	static const struct {
		const char *device;
		uint16_t mtu;
		const char *devargs;
	} devices[] = {
		{"0000:3b:00.0", 1500, "0000:3b:00.0"},
		{"net_af_packet0,iface=eth1", 1500, "net_af_packet0,iface=eth1,qpairs=3"},
		{"net_af_packet0,iface=eth1,qpairs=2", 1500, "net_af_packet0,iface=eth1,qpairs=2"},
		{"net_af_packet0,iface=eth1", 9000,
			"net_af_packet0,iface=eth1,qpairs=3,framesz=16384,blocksz=65536,framecnt=512"},
		{"net_ring0", 1500, "net_ring0"},
	};
	struct options_port port;
	char text[PORT_DEVICE_BYTES], name[RTE_ETH_NAME_MAX_LEN];

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		port = (struct options_port){.device = devices[i].device, .mtu = devices[i].mtu};
		CU_ASSERT_EQUAL(port_devargs(&port, 3, text), 0);
		CU_ASSERT_STRING_EQUAL(text, devices[i].devargs);
	}
	CU_ASSERT_TRUE(port_is_pci("0000:3b:00.0"));
	CU_ASSERT_TRUE(port_is_pci("3b:00.1,arg=1"));
	CU_ASSERT_FALSE(port_is_pci("net_null0"));
	port_name("3b:00.1,arg=1", name);
	CU_ASSERT_STRING_EQUAL(name, "0000:3b:00.1");
	port_name("net_af_packet0,iface=eth1", name);
	CU_ASSERT_STRING_EQUAL(name, "net_af_packet0");
}

static void buffers_hold_a_frame_of_the_largest_mtu(void)
{
	static struct options options = {.worker_count = 4, .port_count = 2};
	struct port_buffers plan;

	options.ports[0].mtu = 1500;
	options.ports[1].mtu = 9000;
	plan = port_plan_buffers(&options);
	CU_ASSERT(plan.room >= 9000 + 14 + 8 + 128);
	// All descriptors of all queues, and some to spare.
	CU_ASSERT(plan.count >= 2 * 4 * 2048);
	CU_ASSERT(plan.bytes >= (uint64_t)plan.count * plan.room);
}

static const struct test_case cases[] = {
	{"a_run_directory_has_one_owner_and_one_process",
		a_run_directory_has_one_owner_and_one_process},
	{"a_file_is_replaced_whole_or_not_at_all", a_file_is_replaced_whole_or_not_at_all},
	{"an_empty_or_missing_file_is_told_apart", an_empty_or_missing_file_is_told_apart},
	{"writing_to_a_private_mapping_leaves_the_file_alone",
		writing_to_a_private_mapping_leaves_the_file_alone},
	{"a_link_in_the_way_is_not_followed", a_link_in_the_way_is_not_followed},
	{"flows_outlive_their_process_and_no_two_share_them",
		flows_outlive_their_process_and_no_two_share_them},
	{"memory_is_zeroed_counted_and_given_back", memory_is_zeroed_counted_and_given_back},
	{"virtual_devices_get_what_their_workers_need",
		virtual_devices_get_what_their_workers_need},
	{"buffers_hold_a_frame_of_the_largest_mtu", buffers_hold_a_frame_of_the_largest_mtu},
};

int main(void)
{
	int status;

	if (mkdtemp(dir) == NULL)
		return 1;
	status = SUITE_RUN("files", cases);
	rmdir(dir);
	return status;
}
